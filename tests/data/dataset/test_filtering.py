"""Fewer rows, fewer columns, other names: filter, split, select, rename, head, and what they do together."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import penstock
from tests.data.dataset.samples import cases, labels, numbered, numbered_file, rows

VISITS = pa.table(
    {
        "user": [1, 1, 2, 3, 2, 1, 4],
        "age": [30, None, 20, None, 50, 60, 70],
        "name": ["ann", "ann", "bob", "cy", "bob", "ann", "dee"],
    }
)


def users(dataset: penstock.Dataset) -> list[int]:
    return [row["user"] for row in dataset]


def test_a_filter_is_an_expression_or_a_function_of_record_batches():
    def is_old(batch: pa.RecordBatch) -> np.ndarray:
        return batch["age"].to_numpy(zero_copy_only=False) > 25

    visits = penstock.from_arrays(VISITS)

    assert users(visits.filter(pc.field("age") > 25)) == [1, 2, 1, 4]
    assert users(visits.filter(is_old)) == [1, 2, 1, 4]
    assert users(visits.filter(is_old).filter(pc.field("name") != "dee")) == [1, 2, 1]
    assert users(visits.fill_nulls(age=99).filter(pc.field("age") > 25)) == [1, 1, 3, 2, 1, 4]
    assert users(visits.filter(pc.field("age").is_null()).fill_nulls(age=99)) == [1, 3]


def test_batches_of_filtered_rows_are_full(tmp_path):
    odd = penstock.read_parquet(numbered_file(tmp_path, 25)).filter(pc.bit_wise_and(pc.field("y"), 1) == 1)

    assert labels(odd.batch(5)) == [[1, 3, 5, 7, 9], [11, 13, 15, 17, 19], [21, 23]]
    assert labels(odd.batch(cost="y", limit=30)) == [[1, 3, 5, 7, 9], [11, 13], [15], [17], [19], [21], [23]]
    assert sorted(rows(odd.shuffle(rows=4).batch(5))) == list(range(1, 25, 2))
    assert sorted(rows(odd.shard(0, 2).batch(5)) + rows(odd.shard(1, 2).batch(5))) == list(range(1, 25, 2))
    assert (odd.num_rows, len(odd), len(odd.batch(5)), len(odd.batch(cost="y", limit=30))) == (12, 12, 3, 7)
    assert len(odd.shuffle(rows=4).shard(0, 2).epochs(2)) == 2 * 6


def test_take_and_head_count_what_is_left_after_a_filter_and_what_is_read_before_it():
    odd = pc.bit_wise_and(pc.field("y"), 1) == 1

    assert rows(numbered(20).filter(odd).take(3).batch(2)) == [1, 3, 5]
    assert rows(numbered(20).take(3).filter(odd).batch(2)) == [1]
    assert sorted(rows(numbered(20).filter(odd).head(3).shuffle(rows=20).batch(2))) == [1, 3, 5]
    assert [row["y"] for row in numbered(20).filter(odd).filter(pc.field("y") > 5).head(2)] == [7, 9]
    assert rows(numbered(20).shuffle(rows=2).filter(odd).batch(2).take(2)) == [1, 3, 5, 7]
    assert rows(numbered(6).filter(odd).take(100).batch(9)) == [1, 3, 5]
    assert len(numbered(20).head()) == 10


def test_only_columns_that_are_used_are_read(tmp_path):
    path = tmp_path / "visits.parquet"
    pq.write_table(VISITS, path)
    names = penstock.read_parquet(path).select(["name"])

    old = names.filter(pc.field("age") > 25)

    assert [row["name"] for row in old] == ["ann", "bob", "ann", "dee"]
    assert old.schema == pa.schema({"name": pa.string()})
    assert old._chain.scan().columns.names == ["name", "age"]
    assert names.split([0.5, 0.5], by="user")[0]._chain.scan().columns.names == ["name", "user"]


def test_columns_are_renamed_and_called_by_their_new_names_from_there_on():
    renamed = penstock.from_arrays(VISITS).rename({"user": "who", "age": "years"})

    assert renamed.schema.names == ["who", "years", "name"]
    old = renamed.fill_nulls(years=0).filter(pc.field("years") > 25).select(["years", "who"])
    assert [batch["years"].tolist() for batch in old.batch(cost="years", limit=100)] == [[30, 50], [60], [70]]
    assert [list(row) for row in old.head(1)] == [["years", "who"]]
    swapped = penstock.from_arrays({"a": [1], "b": [2]}).rename({"a": "b", "b": "a"})
    assert list(swapped) == [{"b": 1, "a": 2}]
    before = penstock.from_arrays(VISITS).filter(pc.field("age") > 65).rename({"age": "user", "user": "who"})
    assert [row["user"] for row in before] == [70]


def test_every_row_is_in_one_part_of_a_split_in_every_epoch(tmp_path):
    file = penstock.read_parquet(numbered_file(tmp_path, 1000, 100))

    parts = file.shuffle(rows=50, seed=3).split([0.7, 0.2, 0.1])
    found = [rows(part.batch(32)) for part in parts]
    again = [sorted(rows(part.batch(7))) for part in file.split([0.7, 0.2, 0.1])]

    assert sorted(y for part in found for y in part) == list(range(1000))
    assert [sorted(part) for part in found] == again
    assert [part.num_rows for part in parts] == [len(part) for part in found] == [708, 196, 96]
    assert sorted(rows(file.split([0.7, 0.3], seed=1)[0].batch(9))) != again[0]


def test_all_rows_of_a_key_are_in_one_part_whatever_type_and_file_they_have():
    keys = np.arange(400) % 40
    tables = [{"user": keys}, {"user": keys.astype(float)}, {"user": [str(key) for key in keys]}]

    parts = [
        [
            {int(float(row["user"])) for row in part}
            for part in penstock.from_arrays(table).split([0.5, 0.5], by="user")
        ]
        for table in tables
    ]

    assert parts[0] == parts[1] == parts[2]
    assert parts[0][0] | parts[0][1] == set(range(40))
    assert not parts[0][0] & parts[0][1]
    assert 12 < len(parts[0][0]) < 28


def test_where_every_row_is_left_out_that_is_said():
    with pytest.warns(
        UserWarning, match=r"^arrays in memory: its 9 rows are all left out, or give no whole batch$"
    ):
        assert list(numbered(9).filter(pc.field("y") > 100).batch(2).epochs()) == []


def test_it_shows_what_is_left_out():
    part = numbered(9).rename({"y": "label"}).filter(pc.field("label") > 1).split([0.5, 0.5], by="label")[1]

    assert repr(part.shuffle(rows=1000)) == (
        "Dataset(arrays in memory; columns x, label (from y); shuffled in 1,000 rows with seed 0; only (label > 1); "
        "only the part from 0.5 to 1 by y)"
    )


REFUSALS = """
data.filter('y > 3')
    filter: is an object of type str; give an expression, such as pyarrow.compute.field('age') > 30, or a function
data.filter(pc.field('z') > 3)
    arrays in memory: there is no column 'z'; known: x, y
data.filter(pc.field('y') + 3)
    filter: add_checked(y, 3) is int64; give a condition that is true or false
data.filter(pc.field('y') > 'a')
    filter: (y > "a"): Function 'greater' has no kernel matching input types (int64, string)
data.batch(2).filter(pc.field('y') > 3)
    filter: stands after batch or epochs and take; it works on rows, so call it before
data.map(dict, rows=True).split([0.5, 0.5])
    split: stands after map; call it before, or leave rows out in the map
list(data.filter(lambda batch: batch['z']))
    filter: <lambda> failed for 8 rows that begin with row 0 of arrays in memory: KeyError: \
'Field "z" does not exist in schema'
list(data.filter(lambda batch: batch['y'] > 3))
    filter: <lambda> failed for 8 rows that begin with row 0 of arrays in memory: TypeError: '>' not supported between \
instances of 'pyarrow.lib.Int64Array' and 'int'; columns are Arrow arrays: use pyarrow.compute, or their to_numpy()
list(data.filter(lambda batch: True))
    filter: <lambda> gave an object of type bool for 8 rows; give a bool for each row
list(data.filter(lambda batch: batch['y']))
    filter: <lambda> gave int64 of shape (8,) for 8 rows; give a bool for each row
list(data.filter(lambda batch: np.ones(3, bool)))
    filter: <lambda> gave bool of shape (3,) for 8 rows; give a bool for each row
data.split([0.9, 0.2])
    split: fractions are [0.9, 0.2], together 1.1; they must be more than 0 and add up to 1
data.split(0.9)
    split: is 0.9; give a list of fractions, such as [0.9, 0.1]
data.split([0.9, 0.1], by='users')
    arrays in memory: there is no column 'users'; known: x, y
data.split([0.9, 0.1], by='x')
    split: 'x' is fixed_size_list<item: float>[2]; give a number or a string
data.rename({'y': 'x'})
    rename: 'x' is named twice; a batch has each column once
data.rename({'z': 'x'})
    arrays in memory: there is no column 'z'; known: x, y
data.shuffle(rows=3).filter(pc.field('y') > 3).take(2)
    take: stands after filter or split and shuffle or shard; call it before shuffle and shard, or after batch, where \
it counts batches
data.batch(2).head(3)
    head: stands after batch; call it before, or take(count) batches
"""


@pytest.mark.parametrize(("call", "message"), cases(REFUSALS))
def test_what_is_said_wrong_is_told(call, message):
    with pytest.raises(penstock.PenstockError) as told:
        eval(call, {"data": numbered(8), "pc": pc, "np": np})

    assert str(told.value) == message
