"""What a Dataset writes: whole or absent, and the same rows when it is read again."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import penstock
from tests.data.dataset.samples import labels, numbered, numbered_file, rows


def test_filtered_mapped_shuffled_rows_are_written_and_read_again(tmp_path):
    def doubled(batch):
        return {"x": batch["x"], "y": batch["y"], "twice": 2 * batch["y"]}

    chosen = (
        penstock.read_parquet(numbered_file(tmp_path, 50))
        .filter(pc.field("y") >= 10)
        .shuffle(rows=20, seed=1)
    )

    num_rows = chosen.batch(7).map(doubled).write_parquet(tmp_path / "chosen.parquet")

    again = penstock.read_parquet(tmp_path / "chosen.parquet")
    assert num_rows == again.num_rows == 40
    assert rows(again.batch(9)) == rows(chosen.batch(9))
    assert [row["twice"] for row in again] == [2 * row["y"] for row in again]
    assert labels(penstock.from_arrays(pq.read_table(tmp_path / "chosen.parquet")).batch(40)) == labels(
        again.batch(40)
    )


def test_what_is_written_keeps_its_types_and_nulls(tmp_path):
    table = pa.table({"age": pa.array([1, None], pa.int32()), "clicks": [[1], []], "name": ["ann", None]})

    penstock.from_arrays(table).rename({"age": "years"}).write_parquet(tmp_path / "people.parquet")
    penstock.from_arrays(table).write_parquet(tmp_path / "parts")
    with pytest.warns(UserWarning, match="its 2 rows are all left out"):
        penstock.from_arrays(table).filter(pc.field("age") > 5).write_parquet(tmp_path / "none.parquet")

    assert pq.read_table(tmp_path / "people.parquet") == table.rename_columns(["years", "clicks", "name"])
    assert pq.read_table(tmp_path / "parts" / "part-00000.parquet") == table
    assert pq.read_table(tmp_path / "none.parquet") == table.slice(0, 0)


def test_tfrecord_files_of_a_dataset(tmp_path):
    chosen = numbered(20).filter(pc.field("y") < 7)

    for name, dataset in {"rows": chosen, "batches": chosen.batch(3)}.items():
        [path] = penstock.write_tfrecord(tmp_path / f"{name}.tfrecord", dataset)
        assert rows(penstock.read_tfrecord(path).batch(4)) == [0, 1, 2, 3, 4, 5, 6]


def test_what_fails_on_the_way_leaves_nothing(tmp_path):
    def late(batch):
        if batch["y"][0] == 4:
            raise KeyError("late")
        return batch

    for write in (
        lambda data: data.write_parquet(tmp_path / "out.parquet"),
        lambda data: penstock.write_tfrecord(tmp_path / "out.tfrecord", data),
    ):
        with pytest.raises(penstock.DataError, match="late failed for a batch of 4 that begins with row 4"):
            write(numbered(8).batch(4).map(late))
        assert list(tmp_path.iterdir()) == []


def test_a_map_that_changes_its_types_is_named(tmp_path):
    def half(batch):
        return {"y": batch["y"] if batch["y"][0] == 0 else batch["y"] / 2}

    with pytest.raises(penstock.DataError) as told:
        numbered(8).batch(4).map(half).write_parquet(tmp_path / "out.parquet")

    assert str(told.value) == (
        "map: column 'y' was int64 and is double now; return the same columns, types and order for every batch"
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "out.csv",
            "write_parquet: 'out.csv' ends in '.csv'; end it in .parquet, or in nothing for a folder",
        ),
        ("here.parquet", "write_parquet: 'here.parquet' exists already; remove it, or choose another name"),
        ("no/out.parquet", "write_parquet: there is no folder 'no'; make it first"),
        (
            "s3://bucket/out.parquet",
            "write_parquet: 's3://bucket/out.parquet' is no local path; write to one, and",
        ),
    ],
)
def test_where_it_cannot_be_written(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.parquet").touch()

    with pytest.raises(penstock.ConfigError) as told:
        numbered(3).write_parquet(path)

    assert str(told.value).startswith(message)


def test_writing_holds_a_row_group_not_the_data(tmp_path):
    held = []

    def watched(batch):
        held.append(pa.total_allocated_bytes())
        return batch

    rows = penstock.from_arrays({"x": np.zeros((400_000, 16))})  # 51 MB
    before = pa.total_allocated_bytes()
    rows.batch(4096).map(watched).write_parquet(tmp_path / "zeros.parquet")

    assert max(held) - before < 45e6
    assert pq.ParquetFile(tmp_path / "zeros.parquet").num_row_groups > 2
