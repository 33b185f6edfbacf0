"""A user's function on the way: what it gets, what it may give back, and what it draws."""

import numpy as np
import pytest

import penstock
from penstock.data.arrow_numpy import Ragged
from tests.data.dataset.samples import cases, numbered


def draw(batch, generator):
    return {"y": batch["y"], "drawn": generator.integers(0, 2**60, len(batch["y"]))}


def test_rows_are_mapped_before_and_after_they_are_batches():
    def double(row):
        return {"y": 2 * row["y"], "name": f"row {row['y']}"}

    before = list(numbered(3).map(double, rows=True).batch(2))
    after = list(numbered(3).batch(2).map(double, rows=True))
    alone = list(numbered(3).map(double, rows=True))

    for first, second in (before, after):
        assert (first["y"].tolist(), second["y"].tolist()) == ([0, 2], [4])
        assert first["name"].tolist() == ["row 0", "row 1"]
    assert alone == [{"y": 0, "name": "row 0"}, {"y": 2, "name": "row 1"}, {"y": 4, "name": "row 2"}]


def test_lists_that_pass_through_rows_stay_lists():
    dataset = penstock.from_arrays({"clicks": [[1, 2], [3, 4]]}).batch(2)

    [batch] = dataset.map(dict, rows=True)

    assert isinstance(batch["clicks"], Ragged)
    assert batch["clicks"].tolist() == [[1, 2], [3, 4]]


def test_two_maps_with_one_seed_draw_different_numbers():
    def again(batch, generator):
        return {**batch, "again": generator.integers(0, 2**60, len(batch["y"]))}

    [batch] = numbered(4).batch(4).map(draw, seed=1).map(again, seed=1)

    assert not np.any(batch["drawn"] == batch["again"])


def test_a_map_may_leave_rows_out():
    def even(batch):
        return {"y": batch["y"][batch["y"] % 2 == 0]}

    def odd(row):
        return row if row["y"] % 2 else None

    assert [batch["y"].tolist() for batch in numbered(7).batch(3).map(even)] == [[0, 2], [4], [6]]
    assert [batch["y"].tolist() for batch in numbered(7).batch(3).map(odd, rows=True)] == [[1], [3, 5]]
    assert [row["y"] for row in numbered(7).map(odd, rows=True)] == [1, 3, 5]


def test_what_a_row_draws_is_its_own_though_others_are_left_out():
    def some(row):
        return row if row["y"] > 2 else None

    def each(row, generator):
        return {"y": row["y"], "drawn": generator.integers(0, 2**60)}

    [batch] = numbered(6).batch(6).map(some, rows=True).map(dict, rows=True).map(each, seed=1, rows=True)
    alone = numbered(6).map(dict, rows=True).map(dict, rows=True).map(each, seed=1, rows=True)

    assert batch["drawn"].tolist() == [row["drawn"] for row in alone][3:]


def test_errors_after_a_map_of_batches_that_left_rows_out_name_the_batch():
    def late(row):
        return {"y": row["z"]} if row["y"] == 3 else row

    with pytest.raises(penstock.DataError) as told:
        list(numbered(4).batch(4).map(lambda batch: {"y": batch["y"][1:]}).map(late, rows=True))

    assert str(told.value) == (
        "map: late failed for row 2 of what is left of the batch that begins with row 0 of arrays in memory: "
        "KeyError: 'z'"
    )


RESULTS = """
data.map(lambda batch: None)
    gave None for a batch of 4 that begins with row 0 of arrays in memory; return a dict
data.map(lambda batch: batch["y"])
    gave an object of type ndarray for a batch of 4 that begins with row 0 of
data.map(lambda batch: {"y": batch["y"][:2], "x": batch["x"]})
    column 'x' has 4 rows, and 'y' 2, for a batch of 4 that begins with row 0
data.map(lambda batch: {"y": range(5)})
    column 'y' has 5 rows for a batch of 4 that begins with row 0 of arrays in memory; give back one
data.map(lambda batch: {"y": batch["y"].sum()})
    column 'y' has a single value for a batch of 4 that begins
data.map(lambda row: row["y"], rows=True)
    gave an object of type int64 for row 0 of arrays in memory; return a dict of columns, or None to
data.map(lambda row: {str(row["y"]): 1}, rows=True)
    the columns are 0 for row 0 of arrays in memory but 1 for row 1 of
"""


@pytest.mark.parametrize(("call", "message"), cases(RESULTS))
def test_what_is_no_batch_is_told(call, message):
    with pytest.raises(penstock.DataError) as told:
        list(eval(call, {"data": numbered(4).batch(4)}))

    assert str(told.value).startswith("map: ")
    assert message in str(told.value)


def test_lists_of_different_lengths_need_to_be_ragged():
    for rows in (False, True):
        with pytest.raises(penstock.DataError) as told:
            list(numbered(2).batch(2).map(lambda _: {"x": [[1], [1, 2]]}, rows=rows))

        assert str(told.value) == (
            "map: column 'x' is no array, since its lists have different lengths; give them as "
            "penstock.Ragged(values, offsets)"
        )


def test_what_arrow_does_not_have_is_told():
    complex_numbers = numbered(2).batch(2).map(lambda batch: {"z": batch["y"] * 1j})

    with pytest.raises(penstock.DataError, match=r"^map: column 'z' cannot be given out as Arrow: "):
        list(complex_numbers.to_arrow())


FUNCTIONS = """
data.map(lambda batch: batch, seed=1)
    <lambda>(batch) is called with a batch and a generator, with seed=: too many positional arguments
data.map(lambda batch, generator: batch)
    <lambda>(batch, generator) is called with a batch, without seed=: missing a required argument: 'generator'
data.map(lambda: None, rows=True)
    <lambda>() is called with a row, without seed=: too many positional arguments
"""


@pytest.mark.parametrize(("call", "message"), cases(FUNCTIONS))
def test_a_function_that_cannot_be_called_is_told_at_once(call, message):
    with pytest.raises(penstock.ConfigError) as told:
        eval(call, {"data": numbered(2).batch(2)})

    assert str(told.value) == f"map: {message}"
