"""Columns of files and batches as arrays, without a function of the user."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import DataError
from penstock.prep.preparing.columns import column_numbers, find_roles
from penstock.prep.preparing.failures import FileFailed
from penstock.prep.preparing.preparing import prepare
from penstock.prep.sections import SampleSchema
from penstock.prep.tfrecord.write import write_tfrecord
from tests.prep.preparing.raw import content, prepared_arrays, section
from tests.readers.object_store import ObjectStore

ROWS: dict[str, Any] = {
    "labels_buy": [0, 1, 1, 0, 1],
    "price": [0.5, 1.5, 2.5, 3.5, 4.5],
    "age": [1, 2, 3, 4, 5],
}
LISTS = ROWS | {"masks_buy": [[1, 0], [1, 1], [0, 1], [1, 0], [0, 0]]}


def roles(columns: dict[str, Any], group_key: str | None = None, **declared: Any) -> Any:
    return find_roles(
        pa.table(columns).schema, SampleSchema.model_validate(declared), group_key, "rows.parquet"
    )


def test_names_tell_what_columns_are():
    found = roles(LISTS)

    assert found.features == ("price", "age")
    assert (found.labels, found.masks) == ({"buy": "labels_buy"}, {"buy": "masks_buy"})


def test_the_run_file_tells_what_columns_are():
    columns = {"f_10": [1.0], "f_9": [1.0], "x": [2.0], "bought": [1], "user": ["ann"]}

    found = roles(columns, "user", feature_columns=["x", "f_*"], label_columns={"buy": "bought"})

    assert found.features == ("x", "f_9", "f_10")
    assert found.columns == ("x", "f_9", "f_10", "bought", "user")


@pytest.mark.parametrize(
    ("columns", "declared", "problem"),
    [
        (
            ROWS,
            {"feature_columns": ["prize"]},
            "has no column 'prize', which preprocessing.schema.feature_columns names; did you mean 'price'?",
        ),
        (
            ROWS,
            {"labels": {"buys": "int16"}},
            "has no column 'buys', which preprocessing.schema.label_columns names; did you mean 'labels_buy'?",
        ),
        (
            ROWS | {"name": ["a"] * 5},
            {},
            "column 'name' holds string, not numbers; name the features in preprocessing.schema.feature_columns",
        ),
        (
            {"labels_buy": [1]},
            {},
            "no column is left for features; name them in preprocessing.schema.feature_columns",
        ),
        (
            ROWS,
            {"feature_columns": ["labels_buy", "age"]},
            "column 'labels_buy' is a feature and a label or mask; leave it out of preprocessing.schema",
        ),
    ],
)
def test_columns_that_are_not_clear(columns: dict, declared: dict, problem: str):
    with pytest.raises(DataError) as error:
        roles(columns, **declared)

    assert str(error.value).startswith(f"rows.parquet: {problem.partition('did you mean')[0]}")


def test_numbers_that_are_missing_or_of_another_length():
    with pytest.raises(
        DataError, match=r"^a\.csv: row 12: column 'x': is null; fill it in, or leave the row out$"
    ):
        column_numbers(pa.array([1, 2, None]), "a.csv", "x", 10)
    with pytest.raises(
        DataError, match=r"^a\.csv: row 11: column 'x': has 1 values but row 10 has 2; all must"
    ):
        column_numbers(pa.array([[1, 2], [3]]), "a.csv", "x", 10)
    assert column_numbers(pa.array([[1, 2], [3, 4]]), "a.csv", "x").tolist() == [[1, 2], [3, 4]]
    assert column_numbers(pa.array([[5], [1], [2]], pa.list_(pa.int8(), 1))[1:], "a", "x").tolist() == [
        [1],
        [2],
    ]


def write_rows(path: Path, columns: dict[str, Any]) -> None:
    table = pa.table(columns)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        write_tfrecord(path, table)


def batch_contents(folder: Path) -> Iterator[bytes]:
    """The bytes of the batch files, in order."""
    return (found for name, found in content(folder).items() if name.startswith("batch_"))


each_format = pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".tfrecord"])


def write_parts(folder: Path, suffix: str) -> dict[str, Any]:
    """The rows in two files; CSV files hold no lists."""
    folder.mkdir()
    columns = ROWS if suffix == ".csv" else LISTS
    for part, rows in enumerate((slice(0, 2), slice(2, 5))):
        some = {name: values[rows] for name, values in columns.items()}
        write_rows(folder / f"rows_{part}{suffix}", some)
    return columns


@each_format
def test_every_format(tmp_path: Path, suffix: str):
    columns = write_parts(tmp_path / "raw", suffix)

    summary = prepare(section(tmp_path, extract=None, schema={"feature_columns": ["age", "price"]}))

    assert (summary.num_files, summary.num_samples) == (2, 5)
    arrays = prepared_arrays(tmp_path / "batches")
    np.testing.assert_array_equal(
        arrays["strategic_features"], np.stack([ROWS["age"], ROWS["price"]], axis=1).astype(np.float32)
    )
    assert arrays["labels_buy"].tolist() == ROWS["labels_buy"]
    if "masks_buy" in columns:
        assert arrays["masks_buy"].tolist() == LISTS["masks_buy"]


@each_format
def test_every_format_in_an_object_store(tmp_path: Path, object_store: ObjectStore, suffix: str):
    write_parts(tmp_path / "raw", suffix)
    bucket = f"raw-{suffix[1:]}"
    object_store.put_folder(bucket, tmp_path / "raw")
    prepare(section(tmp_path, extract=None))

    there = {"extract": None, "input_path": f"s3://{bucket}/*", "intermediate_dir": str(tmp_path / "there")}
    summary = prepare(section(tmp_path, **there, parallel=True, num_workers=1))

    assert (summary.num_files, summary.num_samples, summary.kept_tasks) == (2, 5, 0)
    assert [*batch_contents(tmp_path / "there")] == [*batch_contents(tmp_path / "batches")]
    assert prepare(section(tmp_path, **there)).kept_tasks == 1
    write_rows(tmp_path / "raw" / f"rows_1{suffix}", ROWS)
    object_store.put_folder(bucket, tmp_path / "raw")
    with pytest.raises(DataError, match=rf"something else: input s3://{bucket}/rows_1{suffix} had \d+ bytes"):
        prepare(section(tmp_path, **there))


def test_a_function_is_given_the_url_of_a_file_in_a_store(desk: Path, object_store: ObjectStore):
    object_store.put("replays", {"a.replay": b"1", "b.replay": b"2"})

    prepare(section(desk, extract="rawgame:url_length", input_path="s3://replays/*.replay"))

    assert prepared_arrays(desk / "batches")["strategic_features"].tolist() == [[21.0], [21.0]]


def test_all_files_have_the_columns_of_the_first(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "0.parquet", ROWS)
    write_rows(tmp_path / "raw" / "1.parquet", dict(reversed(ROWS.items())) | {"new": [7] * 5})

    prepare(section(tmp_path, extract=None))

    features = prepared_arrays(tmp_path / "batches")["strategic_features"]
    assert (
        features[:5].tolist()
        == features[5:].tolist()
        == np.stack([ROWS["price"], ROWS["age"]], axis=1).tolist()
    )


def test_a_value_beyond_its_type_is_named(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "0.csv", ROWS | {"labels_buy": [0, 1, 40000, 0, 0]})

    with pytest.raises(FileFailed) as error:
        prepare(section(tmp_path, extract=None))

    assert str(error.value).startswith(f"{tmp_path}/raw/0.csv: sample 2: ")
    assert str(error.value).endswith("40000 does not fit int16 (-32768 to 32767)")
