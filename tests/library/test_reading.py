"""Files of every format give the rows that were written, with their nulls, lists and strings."""

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import penstock

TABLE = pa.table(
    {
        "user": ["ann", None, "", 'd,e\n"f"', "Zoë"],
        "age": [31, 22, -4, 2**40, 0],
        "score": [0.5, None, 2.5, -3.5, 0.0],
        "clicks": pa.array([[7, 8], [], None, [9], [1, 2, 3]], pa.list_(pa.int64())),
    }
)
ROWS = TABLE.to_pylist()
PLAIN = ("user", "age", "score")
"""What CSV can hold."""

AS_NUMPY = {
    "user": np.array(["ann", "", "bob", "Zoë", "x"]),
    "age": np.array([31, 22, -4, 2**40, 0]),
    "vector": np.arange(10, dtype=np.float32).reshape(5, 2),
}


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as Python values; NaN, which equals nothing, as None."""
    values = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in row.items()}
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }


def with_empty_lists(row: dict[str, Any]) -> dict[str, Any]:
    """No list is an empty one."""
    return {**row, "clicks": row["clicks"] or []}


def without_missing_strings(row: dict[str, Any]) -> dict[str, Any]:
    """Text files do not tell a missing string from an empty one."""
    return {**{name: row[name] for name in PLAIN}, "user": row["user"] or ""}


def write_json(path: Path, table: pa.Table) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_stream(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)


WRITERS: dict[str, tuple[Callable[..., Any], Callable[..., penstock.Dataset]]] = {
    "data.parquet": (
        lambda path, table: pq.write_table(table, path, row_group_size=2),
        penstock.read_parquet,
    ),
    "data.json": (write_json, penstock.read_json),
    "data.feather": (
        lambda path, table: pyarrow.feather.write_feather(table, str(path)),
        penstock.read_arrow,
    ),
    "data.arrow": (write_stream, penstock.read_arrow),
    "data.tfrecord": (penstock.write_tfrecord, penstock.read_tfrecord),
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_with_nulls_lists_and_strings(tmp_path: Path, name: str):
    write, read = WRITERS[name]
    write(tmp_path / name, TABLE)

    dataset = read(tmp_path / name)

    assert len(dataset) == dataset.num_rows == 5
    assert [plain(row) for row in dataset] == [with_empty_lists(row) for row in ROWS]


def test_arrow_tables_in_memory():
    assert [plain(row) for row in penstock.from_arrays(TABLE)] == [with_empty_lists(row) for row in ROWS]


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_csv_plain_and_compressed(tmp_path: Path, name: str):
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(TABLE.select(PLAIN), sink)
    content = sink.getvalue().to_pybytes()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    rows = [plain(row) for row in penstock.read_csv(tmp_path / name)]

    assert rows == [without_missing_strings(row) for row in ROWS]


def test_csv_without_a_header_and_with_another_delimiter(tmp_path: Path):
    (tmp_path / "data.tsv").write_text("1\tx\t0.5\n2\ty\t1.5\n")

    dataset = penstock.read_csv(
        tmp_path / "data.tsv",
        types={"id": "int32", "word": "string", "score": "float32"},
        delimiter="\t",
        header=False,
    )

    [batch] = dataset.batch(2)
    assert {name: (column.tolist(), column.dtype) for name, column in batch.items()} == {
        "id": ([1, 2], np.int32),
        "word": (["x", "y"], object),
        "score": ([0.5, 1.5], np.float32),
    }


def test_tfrecords_with_a_schema(tmp_path: Path):
    penstock.write_tfrecord(tmp_path / "data.tfrecord", {"x": AS_NUMPY["vector"], "y": AS_NUMPY["age"]})

    schema = {"x": ("float32", 2), "y": "int64"}
    [batch] = penstock.read_tfrecord(tmp_path / "data.tfrecord", schema=schema).batch(5)

    assert np.array_equal(batch["x"], AS_NUMPY["vector"])
    assert np.array_equal(batch["y"], AS_NUMPY["age"])


@pytest.mark.parametrize("form", ["npz", "store", "arrays"])
def test_numpy_arrays(tmp_path: Path, form: str):
    if form == "npz":
        np.savez(tmp_path / "data.npz", **AS_NUMPY)
        dataset = penstock.read_numpy(tmp_path / "data.npz")
    elif form == "store":
        for name, array in AS_NUMPY.items():
            np.save(tmp_path / f"{name}.npy", array)
        dataset = penstock.read_store(tmp_path)
    else:
        dataset = penstock.from_arrays(AS_NUMPY)

    [batch] = dataset.batch(5)

    assert batch["user"].tolist() == AS_NUMPY["user"].tolist()
    assert batch["age"].tolist() == AS_NUMPY["age"].tolist()
    assert np.array_equal(batch["vector"], AS_NUMPY["vector"])


@pytest.mark.parametrize("name", [*WRITERS, "data.csv", "data.npz"])
def test_files_without_rows(tmp_path: Path, name: str):
    path = tmp_path / name
    if name == "data.json":
        path.touch()
        with pytest.raises(penstock.DataError, match=r"data.json: is empty \(0 bytes\); write it again or"):
            penstock.read_json(path)
        return
    if name == "data.csv":
        path.write_text("user,age\n")
        dataset = penstock.read_csv(path)
    elif name == "data.npz":
        np.savez(path, age=np.zeros(0, np.int64))
        dataset = penstock.read_numpy(path)
    else:
        write, read = WRITERS[name]
        write(path, TABLE.slice(0, 0))
        dataset = read(path)

    with pytest.warns(UserWarning, match="has no rows, so that nothing is given out"):
        assert list(dataset.batch(2)) == []
    assert len(dataset) == 0


def test_several_files_are_read_in_order_with_an_empty_one_among_them(tmp_path: Path):
    for part, rows in (("a", range(3)), ("b", range(0)), ("c", range(3, 5))):
        pq.write_table(pa.table({"y": pa.array(rows, pa.int64())}), tmp_path / f"{part}.parquet")
    files = [tmp_path / f"{part}.parquet" for part in "abc"]

    for paths in (tmp_path, tmp_path / "*.parquet", files):
        assert [row["y"] for row in penstock.read_parquet(paths)] == [0, 1, 2, 3, 4]


def test_only_named_columns_are_read(tmp_path: Path):
    pq.write_table(TABLE, tmp_path / "data.parquet")

    dataset = penstock.read_parquet(tmp_path / "data.parquet", columns=["age", "user"])

    assert [batch.keys() for batch in dataset.batch(5)] == [{"age", "user"}]
    with pytest.raises(penstock.DataError, match=r"there is no column 'ages'; did you mean 'age'\?"):
        penstock.read_parquet(tmp_path / "data.parquet", columns=["ages"])
