"""A user's function on the way: what it gets, what it may give back, and what it draws."""

import numpy as np
import pytest

import penstock
from penstock.pipeline.dataset.ragged import Ragged
from tests.pipeline.dataset.samples import numbered, numbered_file


def draw(batch, generator):
    return {"y": batch["y"], "drawn": generator.integers(0, 2**60, len(batch["y"]))}


def draw_for_a_row(row, generator):
    return {"y": row["y"], "drawn": generator.integers(0, 2**60)}


def drawn(batches):
    """What was drawn for each row."""
    return {
        int(label): int(number)
        for batch in batches
        for label, number in zip(batch["y"], batch["drawn"], strict=True)
    }


def test_batches_are_mapped_in_order():
    batches = numbered(5).batch(2).map(lambda batch: {"sum": batch["x"].sum(axis=1)})

    assert [batch["sum"].tolist() for batch in batches] == [[0, 11], [22, 33], [44]]


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


def test_rows_of_different_lengths_become_lists():
    [batch] = numbered(3).batch(3).map(lambda row: {"ones": np.ones(row["y"])}, rows=True)

    assert batch["ones"].tolist() == [[], [1], [1, 1]]


def test_lists_that_pass_through_rows_stay_lists():
    dataset = penstock.from_arrays({"clicks": [[1, 2], [3, 4]]}).batch(2)

    [batch] = dataset.map(dict, rows=True)

    assert isinstance(batch["clicks"], Ragged)
    assert batch["clicks"].tolist() == [[1, 2], [3, 4]]


def test_maps_follow_each_other():
    one_more = numbered(2).batch(2).map(lambda batch: {"y": batch["y"] + 1})

    assert [batch["y"].tolist() for batch in one_more.map(lambda batch: {"y": 10 * batch["y"]})] == [[10, 20]]


def test_what_a_row_draws_depends_on_the_row_and_the_epoch_alone(tmp_path):
    path = numbered_file(tmp_path, 60)

    def read():
        return penstock.read_parquet(path)

    expected = drawn(read().batch(60).map(draw_for_a_row, seed=3, rows=True))
    shards = [read().shard(index, 2).shuffle("1KiB").batch(7) for index in range(2)]

    assert len(set(expected.values())) == 60
    assert (
        drawn(batch for shard in shards for batch in shard.map(draw_for_a_row, seed=3, rows=True)) == expected
    )
    assert drawn(read().batch(9).prefetch("1KiB").map(draw_for_a_row, seed=3, rows=True)) == expected
    assert drawn(read().batch(60).map(draw_for_a_row, seed=4, rows=True)) != expected
    second_epoch = list(read().batch(60).map(draw_for_a_row, seed=3, rows=True).epochs(2))[1:]
    assert not set(drawn(second_epoch).values()) & set(expected.values())


def test_no_two_batches_draw_the_same_numbers():
    numbers = drawn(numbered(40).shuffle("200B").batch(4).map(draw, seed=1))

    assert len(set(numbers.values())) == 40


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
            "gave None for a batch that begins with row 0 of arrays in memory; return a dict",
        ),
        (
            lambda batch: batch["y"],
            False,
            "gave an object of type ndarray for a batch that begins with row 0 of",
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


def test_an_error_of_the_function_says_where_it_was():
    def divide(batch):
        return {"y": batch["y"] / 0 if 4 in batch["y"] else batch["y"]}

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError) as told:
        list(numbered(8).batch(3).map(divide))

    assert told.value.__notes__ == ["in .map, on a batch that begins with row 3 of arrays in memory"]
