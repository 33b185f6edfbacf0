"""A user's function on the way: what it gets, what it may give back, and what it draws."""

import numpy as np
import pytest

import penstock
from penstock.data.arrow_numpy import Ragged
from tests.data.dataset.samples import numbered


def draw(batch, generator):
    return {"y": batch["y"], "drawn": generator.integers(0, 2**60, len(batch["y"]))}


def drawn(batches):
    """What was drawn for each row."""
    return {
        int(label): int(number)
        for batch in batches
        for label, number in zip(batch["y"], batch["drawn"], strict=True)
    }


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


def test_maps_follow_each_other():
    one_more = numbered(2).batch(2).map(lambda batch: {"y": batch["y"] + 1})

    assert [batch["y"].tolist() for batch in one_more.map(lambda batch: {"y": 10 * batch["y"]})] == [[10, 20]]


def test_two_maps_with_one_seed_draw_different_numbers():
    def again(batch, generator):
        return {**batch, "again": generator.integers(0, 2**60, len(batch["y"]))}

    [batch] = numbered(4).batch(4).map(draw, seed=1).map(again, seed=1)

    assert not np.any(batch["drawn"] == batch["again"])


@pytest.mark.parametrize(
    ("fn", "rows", "message"),
    [
        (
            lambda batch: None,
            False,
            "gave None for a batch of 4 that begins with row 0 of arrays in memory; return a dict",
        ),
        (
            lambda batch: batch["y"],
            False,
            "gave an object of type ndarray for a batch of 4 that begins with row 0 of",
        ),
        (
            lambda batch: {"y": batch["y"][:2]},
            False,
            "column 'y' has 2 rows for a batch of 4 that begins with row 0",
        ),
        (
            lambda batch: {"y": batch["y"].sum()},
            False,
            "column 'y' has a single value for a batch of 4 that begins",
        ),
        (
            lambda row: row if row["y"] < 2 else None,
            True,
            "gave None for row 2 of arrays in memory; return a dict of",
        ),
        (
            lambda row: {str(row["y"]): 1},
            True,
            "the columns are 0 for row 0 of arrays in memory but 1 for row 1 of",
        ),
    ],
    ids=["None", "no dict", "fewer rows", "one value", "a row is None", "other columns"],
)
def test_what_is_no_batch_is_told(fn, rows, message):
    with pytest.raises(penstock.DataError) as told:
        list(numbered(4).batch(4).map(fn, rows=rows))

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


@pytest.mark.parametrize(
    ("fn", "options", "message"),
    [
        (
            lambda batch: batch,
            {"seed": 1},
            "map: <lambda>(batch) is called with a batch and a generator, with seed=: too many positional arguments",
        ),
        (
            lambda batch, generator: batch,
            {},
            (
                "map: <lambda>(batch, generator) is called with a batch, without seed=: missing a required argument: "
                "'generator'"
            ),
        ),
        (
            lambda: None,
            {"rows": True},
            "map: <lambda>() is called with a row, without seed=: too many positional arguments",
        ),
        (dict, {"seed": "a"}, "map: seed is 'a'; give a whole number"),
        (dict, {"rows": "yes"}, "map: rows is 'yes'; give True or False"),
    ],
    ids=["no generator", "a generator", "nothing", "seed", "rows"],
)
def test_a_function_that_cannot_be_called_is_told_at_once(fn, options, message):
    with pytest.raises(penstock.ConfigError) as told:
        numbered(2).batch(2).map(fn, **options)

    assert str(told.value) == message
