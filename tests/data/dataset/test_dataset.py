"""The chain: which rows come, in which portions, and how often."""

import sys

import numpy as np
import pytest

import penstock
from tests.data.dataset.samples import cases, labels, numbered, numbered_file, rows


def test_the_cost_need_not_be_among_the_columns():
    table = penstock.from_arrays({"x": [1, 2, 3], "cost": [6, 6, 1]})

    batches = list(table.select(["x"]).batch(cost="cost", limit=10))

    assert [batch["x"].tolist() for batch in batches] == [[1], [2, 3]]
    assert batches[0].keys() == {"x"}


def test_a_column_of_lists_is_no_cost_but_their_lengths_are():
    lists = penstock.from_arrays({"clicks": [[1, 2], [], [3]]})

    with pytest.raises(penstock.DataError) as told:
        lists.batch(cost="clicks", limit=4)

    assert str(told.value) == (
        "arrays in memory: column 'clicks': is of type list<item: int64>; a cost is a number; for the length of its "
        "lists write cost='sum_of_lengths(clicks)'"
    )


def test_take_before_shuffle_is_of_the_data_and_after_it_of_what_comes():
    assert sorted(rows(numbered(50).take(5).shuffle("1MiB").batch(2))) == [0, 1, 2, 3, 4]

    taken = rows(numbered(50).shuffle("1MiB").take(5).batch(2))
    assert len(taken) == 5
    assert sorted(taken) != [0, 1, 2, 3, 4]


def test_take_before_epochs_is_of_each_and_after_them_of_all():
    assert labels(numbered(5).batch(2).take(2).epochs(2)) == [[0, 1], [2, 3], [0, 1], [2, 3]]
    assert labels(numbered(5).batch(2).epochs(2).take(4)) == [[0, 1], [2, 3], [4], [0, 1]]
    assert labels(numbered(3).batch(2).epochs().take(5)) == [[0, 1], [2], [0, 1], [2], [0, 1]]


def test_batches_of_arrays_in_order_are_views():
    features = np.zeros((10, 3), np.float32)

    batch = next(iter(penstock.from_arrays({"x": features}).batch(4)))

    assert np.shares_memory(batch["x"], features)
    assert not batch["x"].flags.writeable


def test_the_length_is_rows_or_batches_of_a_pass(tmp_path):
    file = penstock.read_parquet(numbered_file(tmp_path, 25))

    assert len(file) == file.num_rows == 25
    assert len(file.shard(1, 2)) == 12
    assert len(file.batch(10)) == 3
    assert len(file.batch(10, drop_remainder=True).epochs(3)) == 6
    assert len(file.batch(10).take(2)) == 2
    assert len(file.take(7).batch(2)) == 4
    assert len(file.epochs().batch(10).take(100)) == 100
    assert file.epochs(2)
    with pytest.raises(TypeError, match="without end has no length"):
        len(file.epochs())


def test_an_empty_data_set_gives_no_batch_and_says_so():
    with pytest.warns(UserWarning, match=r"^arrays in memory: has no rows, so that nothing is given out$"):
        assert list(numbered(0).batch(4)) == []


def test_a_shard_without_rows_is_nothing_to_warn_of(recwarn):
    assert list(numbered(2).shard(2, 3).batch(4)) == []
    assert [str(warning.message) for warning in recwarn] == []


def test_it_shows_what_was_said():
    dataset = numbered(9).shard(0, 2).shuffle("64MiB", seed=7).batch(32).map(dict).epochs(3).prefetch("1MiB")

    assert repr(dataset) == (
        "Dataset(arrays in memory; shard 0 of 2; shuffled in 64MiB with seed 7; batches of 32 rows; mapped; "
        "3 epochs; prefetched in 1MiB)"
    )


REFUSALS = """
data.batch(0)
    batch: is 0; give the number of rows, at least one, or cost= and limit=
data.shuffle('much')
    shuffle: is 'much'; expected a size such as '64MiB' or a number of bytes
data.shard(2, 2)
    shard: there is no shard 2 of 2; they are counted from 0
data.batch(2, limit=5)
    batch: limit counts only with cost=, the column that tells what a row costs
data.batch(2, cost='y', limit=5)
    batch: rows and cost say different things; give max_rows to bound the rows too
data.batch(cost='y', limit=5, oversize='alon')
    batch: oversize is 'alon'; did you mean 'alone'?
data.batch(cost='y', limit=-1)
    batch: a batch may cost more than 0 and at most 2**62, not -1
data.batch(2).batch(2)
    batch: there are batches already
data.epochs(2).take(4).batch(2)
    batch: stands after epochs and take; call take before epochs, or after batch
data.shuffle('1MiB').shuffle('1MiB')
    shuffle: the rows are shuffled already
data.batch(2).shuffle('1MiB')
    shuffle: stands after batch or take; it mixes rows, so call it before
data.shuffle(0)
    shuffle: is 0; a size is at least one byte
data.shuffle(1000)
    shuffle: is 1000, which would be bytes; write '64MiB', or rows=1000 for so many rows
data.shuffle('1000')
    shuffle: is 1000, which would be bytes; write '64MiB', or rows=1000 for so many rows
data.shuffle()
    shuffle: give the buffer as a size, '64MiB', or as rows=1000
data.shuffle('1MiB', rows=10)
    shuffle: give the buffer as a size, '64MiB', or as rows=1000
data.shuffle(rows=1)
    shuffle: rows is 1; a shuffle mixes 2 rows or more
data.prefetch(2)
    prefetch: is 2, which would be bytes; write '64MiB'
data.memory(512)
    memory: is 512, which would be bytes; write '64MiB'
data.shard(0, 2).shard(0, 2)
    shard: this is shard 0 of 2 already
data.batch(2).take(3).shard(0, 2)
    shard: stands after take; call it before, so that each shard takes its own
data.map(dict)
    map: there are no batches yet; call .batch before it, or give rows=True
data.batch(2).map(dict).select(['x'])
    select: stands after map; call it before, or return fewer columns from the map
data.select('x')
    select: is 'x'; give a list of names
data.select(['x', 'x'])
    select: 'x' is named twice; a batch has each column once
data.shuffle('1MiB', seed='a')
    shuffle: seed is 'a'; give a whole number
data.batch(cost='y', limit='10')
    batch: limit is '10'; give a number
data.batch(cost=len, limit=10)
    batch: cost is an object of type builtin_function_or_method; give the name of a column, \
or sum_of_lengths(column, ...) or max_of_lengths(column, ...)
data.batch(cost='sum_of_lengths(x)', limit=10, null_cost=1)
    batch: null_cost counts only with a column of costs; no length is ever missing
data.fill_nulls(y=None)
    fill_nulls: None is no value of column 'y', which is int64
data.batch(2).map(dict).fill_nulls(y=0)
    fill_nulls: stands after map, which nulls have reached; call it before
data.set_epoch('1')
    set_epoch: is '1'; epochs are counted from 0
data.to_arrow()
    to_arrow: record batches are batches; call .batch before it
list(data.shuffle('20B').batch(2))
    shuffle: a buffer of 20B holds no two rows of arrays in memory; a row takes 24B, and the buffer is in bytes
"""
"""Each call on a Dataset of numbers, and below it what it says."""


@pytest.mark.parametrize(("call", "message"), cases(REFUSALS))
def test_what_is_said_wrong_is_told_where_it_is_said(call, message):
    with pytest.raises(penstock.ConfigError) as told:
        eval(call, {"data": numbered(8)})

    assert str(told.value) == message


def test_to_tf_without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)

    with pytest.raises(
        penstock.ConfigError, match=r"^to_tf: TensorFlow is not installed; pip install 'penstock\[tf\]'$"
    ):
        numbered(3).batch(2).to_tf()
