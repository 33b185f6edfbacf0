"""Written and read again: the same rows, whatever they hold."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import ConfigError, DataError
from penstock.readers.tfrecord_write import write_tfrecord
from tests.readers.samples import open_path, table_of, write_parquet
from tests.readers.tfrecord_samples import read

INT64S = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)
TEXTS = st.text(max_size=300)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": INT64S,
    "int8": st.integers(-128, 127),
    "bool": st.booleans(),
    "float32": FLOATS,
    "float64": FLOATS,
    "string": TEXTS,
    "bytes": st.binary(max_size=300),
}
ARROW_TYPES = {
    "int64": pa.int64(),
    "int8": pa.int8(),
    "bool": pa.bool_(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


@st.composite
def columns(draw: st.DrawFn, num_rows: int) -> tuple[Any, pa.Array]:
    """How a column is declared, and its values; a missing list of any length is read as an empty one."""
    name = draw(st.sampled_from(list(VALUES)))
    value, arrow_type = VALUES[name], ARROW_TYPES[name]
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
def test_any_columns_come_back(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[dict[str, Any], pa.Table], files: int, suffix: str
):
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
    schema = {
        "double": "float64",
        "uint64": "int64",
        "null list": ["int64"],
        "half": "float32",
        "category": "string",
    }

    assert read(tmp_path, {**schema, "nothing": "int64"}).to_pydict() == {
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
    schema = {
        "lists": ["int64"],
        "texts": "string",
        "fixed": ("float32", 2),
        "views": "string",
        "codes": "bytes",
    }

    assert read(tmp_path, {**schema, "flags": "bool"}).to_pydict() == table.to_pydict()


def test_numpy_arrays_are_columns(tmp_path: Path):
    arrays = {
        "features": np.arange(6, dtype=np.float32).reshape(3, 2),
        "label": np.array([0, 1, 0]),
        "name": ["a", "b", "c"],
    }
    write_tfrecord(tmp_path / "a.tfrecord", arrays)

    assert read(tmp_path, {"features": ("float32", 2), "label": "int64", "name": "string"}).to_pydict() == {
        "features": [[0, 1], [2, 3], [4, 5]],
        "label": [0, 1, 0],
        "name": ["a", "b", "c"],
    }


def test_a_stream_is_written_as_it_comes_without_the_origin_of_its_rows(tmp_path: Path):
    (tmp_path / "parquet").mkdir()
    stream = open_path(write_parquet(tmp_path / "parquet", [7, 6], row_group_size=3))
    paths = write_tfrecord(tmp_path / "b.tfrecord", stream, files=3)

    assert [Path(path).name for path in paths] == [f"b-0000{i}-of-00003.tfrecord" for i in range(3)]
    parts = [read(path) for path in paths]
    assert [part.num_rows for part in parts] == [5, 4, 4]
    assert sorted(n for part in parts for n in part["number"].to_pylist()) == list(range(13))
    assert parts[0].schema.names == ["list", "number", "text"]


def test_a_file_is_whole_or_absent(tmp_path: Path):
    def batches():
        yield table_of(0, 5).to_batches()[0]
        raise RuntimeError("the source broke off")

    with pytest.raises(RuntimeError, match="the source broke off"):
        write_tfrecord(tmp_path / "a.tfrecord", batches(), files=2)

    assert list(tmp_path.iterdir()) == []


def test_an_older_file_stays_until_the_new_one_is_whole(tmp_path: Path):
    path = tmp_path / "a.tfrecord"
    write_tfrecord(path, table_of(0, 5))

    with pytest.raises(DataError):
        write_tfrecord(path, iter([table_of(0, 7).to_batches()[0], pa.record_batch({"other": [1]})]))
    assert read(path).num_rows == 5
    write_tfrecord(path, table_of(0, 7))
    assert read(path).num_rows == 7


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            pa.table({"when": pa.array([0], pa.timestamp("s"))}),
            (
                "column 'when': has type timestamp[s], which a tf.train.Example cannot hold; "
                "it holds integers, bools, floats, strings, bytes, and lists of these: cast it first"
            ),
        ),
        (
            pa.table({"deep": [[[1]]]}),
            (
                "column 'deep': has type list<item: list<item: int64>>, which a tf.train.Example cannot hold; "
                "it holds integers, bools, floats, strings, bytes, and lists of these: cast it first"
            ),
        ),
        (
            pa.table({"x": [[1], [2, None]]}),
            "column 'x': has a null inside a list, which a tf.train.Example cannot hold",
        ),
        (
            pa.table({"x": pa.array([2**63], pa.uint64())}),
            (
                "column 'x': cannot be written as int64: Integer value 9223372036854775808 not in range: "
                "0 to 9223372036854775807"
            ),
        ),
        ({"x": np.zeros((2, 2, 2))}, "column 'x': has 3 dimensions; reshape it to rows and values"),
        ({"x": [1, 2], "y": [1]}, "'x' has 2 rows but 'y' has 1; all arrays need as many"),
    ],
)
def test_what_cannot_be_written_names_the_column(tmp_path: Path, rows: Any, problem: str):
    with pytest.raises(DataError) as error:
        write_tfrecord(tmp_path / "a.tfrecord", rows)

    assert str(error.value) == problem
    assert list(tmp_path.iterdir()) == []


def test_options_that_cannot_be_are_told(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"files: is 0; rows are written to 1 file or more"):
        write_tfrecord(tmp_path / "a.tfrecord", table_of(0, 1), files=0)
    with pytest.raises(ConfigError, match=r"compression: is 'zip'; known: 'gzip'"):
        write_tfrecord(tmp_path / "a.tfrecord", table_of(0, 1), compression="zip")
    with pytest.raises(ConfigError, match=r"compression: is 'gzip', but '.*' does not end with \.gz"):
        write_tfrecord(tmp_path / "a.tfrecord", table_of(0, 1), compression="gzip")
    with pytest.raises(DataError, match=r"no/a\.tfrecord: cannot be written: "):
        write_tfrecord(tmp_path / "no" / "a.tfrecord", table_of(0, 1))
