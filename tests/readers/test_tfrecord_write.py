"""Written and read again: the same rows, whatever they hold."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError, PenstockError
from penstock.readers.tfrecord_write import write_tfrecord
from tests.readers.samples import open_path, table_of, write_parquet
from tests.readers.tfrecord_samples import read

FLOATS = st.floats(width=32, allow_nan=False)
VALUES: dict[str, tuple[st.SearchStrategy[Any], pa.DataType]] = {
    "int64": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "int8": (st.integers(-128, 127), pa.int8()),
    "bool": (st.booleans(), pa.bool_()),
    "float32": (FLOATS, pa.float32()),
    "float64": (FLOATS, pa.float64()),
    "string": (st.text(max_size=300), pa.string()),
    "bytes": (st.binary(max_size=300), pa.binary()),
}
ADVICE = (
    "which a tf.train.Example cannot hold; it holds integers, bools, floats, strings, bytes, and lists of these: "
    "cast it first"
)


@st.composite
def columns(draw: st.DrawFn, num_rows: int) -> tuple[Any, pa.Array]:
    """How a column is declared, and its values; a missing list of any length is read as an empty one."""
    name = draw(st.sampled_from(list(VALUES)))
    value, arrow_type = VALUES[name]
    shape = draw(st.sampled_from(["one", "any", 1, 3]))
    if shape == "one":
        values, declared = st.none() | value, name
    elif shape == "any":
        values, declared, arrow_type = st.lists(value, max_size=5), [name], pa.list_(arrow_type)
    else:
        values = st.none() | st.lists(value, min_size=shape, max_size=shape)
        declared, arrow_type = (name, shape), pa.list_(arrow_type, shape)
    return declared, pa.array(draw(st.lists(values, min_size=num_rows, max_size=num_rows)), arrow_type)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Any], pa.Table]:
    names = draw(
        st.lists(
            st.text(min_size=1, max_size=200).filter(lambda name: name != "__row__"),
            min_size=1,
            max_size=6,
            unique=True,
        )
    )
    num_rows = draw(st.integers(0, 12))
    drawn = {name: draw(columns(num_rows)) for name in names}
    schema = {name: declared for name, (declared, _) in drawn.items()}
    return schema, pa.table({name: array for name, (_, array) in drawn.items()})


@settings(max_examples=50)
@given(tables(), st.integers(1, 4), st.sampled_from([".tfrecord", ".tfrecord.gz"]))
def test_any_columns_come_back(tmp_path_factory, drawn, files, suffix):
    schema, table = drawn
    folder = tmp_path_factory.mktemp("data")
    write_tfrecord(folder / f"a{suffix}", table, files=files)

    assert read(folder, schema).equals(table)


def test_what_changes_on_the_way(tmp_path: Path):
    table = pa.table(
        {
            "double": pa.array([0.1, 1e300]),
            "uint64": pa.array([1, 2**63 - 1], pa.uint64()),
            "null list": pa.array([None, [1]], pa.list_(pa.int64())),
            "half": pa.array(np.array([0.5, 1.5], np.float16)),
            "category": pa.array(["a", None]).dictionary_encode(),
            "nothing": pa.nulls(2),
        }
    )
    write_tfrecord(tmp_path / "a.tfrecord", table)
    schema = {"double": "float64", "uint64": "int64", "null list": ["int64"], "half": "float32"}

    assert read(tmp_path, {**schema, "category": "string", "nothing": "int64"}).to_pydict() == {
        "double": [float(np.float32(0.1)), math.inf],
        "uint64": [1, 2**63 - 1],
        "null list": [[], [1]],
        "half": [0.5, 1.5],
        "category": ["a", None],
        "nothing": [None, None],
    }


def test_sliced_and_wide_columns(tmp_path: Path):
    table = pa.table(
        {
            "lists": pa.array([[n] * (n % 3) for n in range(10)], pa.large_list(pa.int32())),
            "texts": pa.array([f"text {n}" for n in range(10)], pa.large_string()),
            "fixed": pa.array([[n, None if n == 0 else n] for n in range(10)], pa.list_(pa.float32(), 2)),
            "views": pa.array([f"{n}" * n for n in range(10)], pa.string_view()),
            "codes": pa.array([b"%02d" % n for n in range(10)], pa.binary(2)),
            "flags": pa.array([n % 2 == 0 for n in range(10)]),
        }
    ).slice(3, 5)
    write_tfrecord(tmp_path / "a.tfrecord", table)
    schema = {"lists": ["int64"], "texts": "string", "fixed": ("float32", 2), "views": "string"}

    assert read(tmp_path, {**schema, "codes": "bytes", "flags": "bool"}).to_pydict() == table.to_pydict()


def test_a_stream_is_written_as_it_comes_without_the_origin_of_its_rows(tmp_path: Path):
    (tmp_path / "parquet").mkdir()
    stream = open_path(write_parquet(tmp_path / "parquet", [7, 6], row_group_size=3))
    paths = write_tfrecord(tmp_path / "b.tfrecord", stream, files=3)

    assert [Path(path).name for path in paths] == [f"b-0000{i}-of-00003.tfrecord" for i in range(3)]
    parts = [read(path) for path in paths]
    assert [part.num_rows for part in parts] == [5, 4, 4]
    assert sorted(n for part in parts for n in part["number"].to_pylist()) == list(range(13))
    assert parts[0].schema.names == ["list", "number", "text"]


def test_a_file_is_whole_or_as_it_was(tmp_path: Path):
    def batches():
        yield table_of(0, 5).to_batches()[0]
        raise RuntimeError("the source broke off")

    path = tmp_path / "a.tfrecord"
    for num_files in (1, 2):
        with pytest.raises(RuntimeError, match="the source broke off"):
            write_tfrecord(path, batches(), files=num_files)
    assert list(tmp_path.iterdir()) == []
    write_tfrecord(path, table_of(0, 5))
    with pytest.raises(DataError, match="the columns change from one batch to the next"):
        write_tfrecord(path, iter([table_of(0, 7).to_batches()[0], pa.record_batch({"other": [1]})]))
    assert read(path).num_rows == 5


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (pa.table({"x": pa.array([0], pa.timestamp("s"))}), f"has type timestamp[s], {ADVICE}"),
        (pa.table({"x": [[[1]]]}), f"has type list<item: list<item: int64>>, {ADVICE}"),
        (pa.table({"x": [[1], [2, None]]}), "has a null inside a list, which a tf.train.Example cannot hold"),
        (
            pa.table({"x": pa.array([2**63], pa.uint64())}),
            "cannot be written as int64: Integer value 9223372036",
        ),
        ({"x": np.zeros((2, 2, 2))}, "has 3 dimensions; reshape it to rows and values"),
        ({"x": [1, 2], "y": [1]}, "has 2 rows but 'y' has 1; all arrays need as many"),
    ],
)
def test_what_cannot_be_written_names_the_column(tmp_path: Path, rows: Any, problem: str):
    with pytest.raises(DataError, match=rf"'x':? {re.escape(problem)}"):
        write_tfrecord(tmp_path / "a.tfrecord", rows)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("a.tfrecord", {"files": 0}, "files: is 0; rows are written to 1 file or more"),
        ("a.tfrecord", {"compression": "zip"}, "compression: is 'zip'; known: 'gzip'"),
        ("a.tfrecord", {"compression": "gzip"}, r"compression: is 'gzip', but '.*' does not end with \.gz"),
        ("no/a.tfrecord", {}, r"no/a\.tfrecord: cannot be written: "),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, name: str, options: dict[str, Any], problem: str):
    with pytest.raises(PenstockError, match=problem):
        write_tfrecord(tmp_path / name, table_of(0, 1), **options)
