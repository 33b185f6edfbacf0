"""A file of one format given to the call that reads another: the error names the call that reads it."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import penstock

TABLE = pa.table({"age": [31, 22], "score": [0.5, 1.5]})
LINES = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist())


def write_stream(path):
    with pa.ipc.new_stream(path, TABLE.schema) as stream:
        stream.write_table(TABLE)


FILES = {
    "parquet": (lambda path: pq.write_table(TABLE, path), "read_parquet"),
    "csv": (lambda path: pyarrow.csv.write_csv(TABLE, path), "read_csv"),
    "tabs": (lambda path: path.write_text("age\tscore\n31\t0.5\n"), "read_csv(..., delimiter='\\t')"),
    "json": (lambda path: path.write_text(LINES), "read_json"),
    "feather": (lambda path: pyarrow.feather.write_feather(TABLE, path), "read_arrow"),
    "stream": (write_stream, "read_arrow"),
    "tfrecord": (lambda path: penstock.write_tfrecord(path, TABLE), "read_tfrecord"),
    "npy": (lambda path: np.save(path.open("wb"), np.arange(3)), "read_numpy"),
    "npz": (lambda path: np.savez(path.open("wb"), age=np.arange(3)), "read_numpy"),
}
"""How a file is written, under a name that does not tell its format, and the call that reads it."""

NAMES = {
    "read_parquet": "Parquet",
    "read_csv": "CSV",
    "read_json": "JSON",
    "read_arrow": "Arrow IPC",
    "read_tfrecord": "TFRecord",
    "read_numpy": "NumPy",
}
PAIRS = [
    (written, call) for written, (_, right) in FILES.items() for call in NAMES if not right.startswith(call)
]


@pytest.mark.parametrize(("written", "call"), PAIRS)
def test_a_file_of_another_format_is_told_with_the_call_that_reads_it(tmp_path, written, call):
    path = tmp_path / "data"
    write, right_call = FILES[written]
    write(path)
    looks = NAMES[right_call.partition("(")[0]]

    with pytest.raises(penstock.DataError) as told:
        getattr(penstock, call)(path)

    assert str(told.value) == f"{path}: looks like {looks}, not {NAMES[call]}; use {right_call}"


@pytest.mark.parametrize("name", ["data.csv.gz", "data.csv"])
def test_a_compressed_file_is_told_as_one(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"age,score\n31,0.5\n"))

    with pytest.raises(penstock.DataError) as told:
        penstock.read_parquet(path)

    assert str(told.value) == f"{path}: looks like CSV compressed with gzip, not Parquet; use read_csv"
    assert next(iter(penstock.read_csv(path)))["age"] == 31


def test_a_damaged_file_of_the_right_format_is_told_as_damaged(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(penstock.DataError, match="is not a whole Parquet file"):
        penstock.read_parquet(path)


def test_bad_values_make_a_column_text_and_the_cure_is_named(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("age,score\n31,0.5\nold,1.5\n")

    for wrong in (
        lambda data: data.batch(cost="age", limit=9),
        lambda data: data.fill_nulls(age=0),
    ):
        with pytest.raises(penstock.PenstockError) as told:
            wrong(penstock.read_csv(path))
        assert str(told.value).endswith(
            "; where that is because of some bad values, say the type, types={'age': 'float64'}, and the first of them "
            "is named"
        )
    with pytest.raises(penstock.DataError) as told:
        list(penstock.read_csv(path, types={"age": "float64"}).batch(2))
    assert str(told.value) == (
        f"{path}: row 1: column 'age': value 'old' is not double; correct it, or declare another type in types="
    )
