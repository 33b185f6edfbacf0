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
from penstock.prep.merge.merging import merge
from penstock.prep.preparing.failures import FileFailed
from penstock.prep.preparing.preparing import prepare
from penstock.prep.tfrecord.write import write_tfrecord
from penstock.readers.store_schema import StoreSchema
from tests.prep.preparing.raw import content, prepared_arrays, section
from tests.readers.object_store import ObjectStore

ROWS: dict[str, Any] = {
    "labels_buy": [0, 1, 1, 0, 1],
    "price": [0.5, 1.5, 2.5, 3.5, 4.5],
    "age": [1, 2, 3, 4, 5],
}
LISTS = ROWS | {"masks_buy": [[1, 0], [1, 1], [0, 1], [1, 0], [0, 0]]}


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


def slow(suffix: str) -> Any:
    return pytest.param(suffix, marks=pytest.mark.slow)


@pytest.mark.parametrize("suffix", [".parquet", slow(".csv"), slow(".jsonl"), slow(".tfrecord")])
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

    prepare(section(tmp_path, extract=None, schema={"feature_columns": ["price", "age"]}))

    features = prepared_arrays(tmp_path / "batches")["strategic_features"]
    assert (
        features[:5].tolist()
        == features[5:].tolist()
        == np.stack([ROWS["price"], ROWS["age"]], axis=1).tolist()
    )


NOT_FIRST = "is not in the first file that has samples; name the"


@pytest.mark.parametrize(
    ("further", "schema", "problem"),
    [
        (
            {"new": [7] * 5},
            {},
            f"column 'new' {NOT_FIRST} features in preprocessing.schema.feature_columns",
        ),
        (
            {"labels_sell": [0] * 5},
            {"feature_columns": ["age"]},
            f"column 'labels_sell', of head 'sell', {NOT_FIRST} heads in preprocessing.schema.label_columns",
        ),
        (
            {"masks_buy": [[0]] * 5},
            {"label_columns": {"buy": "labels_buy"}},
            f"column 'masks_buy', of head 'buy', {NOT_FIRST} heads in preprocessing.schema.mask_columns",
        ),
    ],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_column_that_only_later_files_have(
    tmp_path: Path, suffix: str, further: dict[str, Any], schema: dict[str, Any], problem: str
):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / f"0{suffix}", ROWS)
    write_rows(tmp_path / "raw" / f"1{suffix}", ROWS | further)

    with pytest.raises(FileFailed) as error:
        prepare(section(tmp_path, extract=None, schema=schema))

    assert str(error.value) == f"{tmp_path}/raw/1{suffix}: {problem}"


def test_a_head_that_only_later_files_have_where_the_first_has_none(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/0.csv").write_text("price\n1\n")
    (tmp_path / "raw/1.csv").write_text("price,labels_buy\n1,1\n")

    with pytest.raises(
        FileFailed, match=rf"1\.csv: column 'labels_buy', of head 'buy', {NOT_FIRST} heads in"
    ):
        prepare(section(tmp_path, extract=None))


def test_columns_beside_those_that_are_named_may_come_and_go(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "0.parquet", LISTS)
    write_rows(tmp_path / "raw" / "1.parquet", LISTS | {"labels_sell": [0] * 5, "name": ["x"] * 5})
    named = {
        "feature_columns": ["price"],
        "label_columns": {"buy": "labels_buy"},
        "mask_columns": {"buy": "masks_buy"},
    }

    prepare(section(tmp_path, extract=None, schema=named))

    arrays = prepared_arrays(tmp_path / "batches")
    assert {name: len(array) for name, array in arrays.items()} == {
        "strategic_features": 10,
        "labels_buy": 10,
        "masks_buy": 10,
    }


def test_two_columns_of_one_name(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    column = pa.array([1.0])
    path = tmp_path / "raw" / "0.parquet"
    pq.write_table(pa.Table.from_arrays([column, column, column], ["price", "age", "age"]), path)

    with pytest.raises(FileFailed) as error:
        prepare(section(tmp_path, extract=None))

    assert str(error.value) == f"{path}: column 'age': stands 2 times in this file"


def test_a_value_beyond_its_type_is_named(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "0.csv", ROWS | {"labels_buy": [0, 1, 40000, 0, 0]})

    with pytest.raises(FileFailed) as error:
        prepare(section(tmp_path, extract=None))

    assert str(error.value).startswith(f"{tmp_path}/raw/0.csv: sample 2: ")
    assert str(error.value).endswith(
        "40000 does not fit int16 (-32768 to 32767); declare another type in preprocessing.schema.labels"
    )


def columns_of(folder: Path) -> dict[str, tuple[str, ...]]:
    """What the store of a folder says of where its arrays came from."""
    merge(folder / "batches", folder / "store")
    document = json.loads((folder / "store" / "manifest.json").read_text())
    return {spec.name: spec.columns for spec in StoreSchema.from_document(document["schema"]).arrays}


@each_format
def test_the_store_tells_which_column_is_which(tmp_path: Path, suffix: str):
    write_parts(tmp_path / "raw", suffix)

    prepare(section(tmp_path, extract=None))

    first, *others = columns_of(tmp_path).values()
    assert first == (
        ("age", "price") if suffix == ".tfrecord" else ("price", "age")
    )  # of which a record has no order
    assert {*others} == {()}


def test_columns_of_groups(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "a.parquet", ROWS | {"height": [1.0] * 5})

    prepare(section(tmp_path, extract=None, schema={"feature_groups": {"body": ["age", "height"]}}))

    columns = columns_of(tmp_path)
    assert columns["strategic_features"] == ("price",)
    assert columns["strategic_features_body"] == ("age", "height")


def test_lists_have_no_names_of_single_values(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "a.parquet", ROWS | {"board": [[1.0, 2.0]] * 5})

    prepare(section(tmp_path, extract=None))

    assert columns_of(tmp_path)["strategic_features"] == ()


@pytest.mark.parametrize("empty", ["0.csv", "2.csv"])
def test_a_file_with_nothing_but_a_header_gives_no_samples_wherever_it_stands(tmp_path: Path, empty: str):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "1.csv", ROWS)
    (tmp_path / "raw" / empty).write_text("labels_buy,price,age\n")

    summary = prepare(section(tmp_path, extract=None))

    assert (summary.num_samples, summary.empty) == (5, [f"{tmp_path}/raw/{empty}"])


def test_groups_of_csv_files_are_the_texts_that_are_written_there(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/0.csv").write_text("price,match\n0.5,007\n1.5,7\n")
    (tmp_path / "raw/1.csv").write_text("price,match\n2.5,007\n3.5,x\n")

    prepare(section(tmp_path, extract=None, splits={"by": "group", "group_key": "match"}))

    first, second, third, last = prepared_arrays(tmp_path / "batches")["groups"].tolist()
    assert (first, len({first, second, last})) == (third, 3)


def test_a_row_without_a_group_is_told(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/0.csv").write_text("price,match\n0.5,007\n1.5,\n")

    with pytest.raises(FileFailed, match=r"0\.csv: sample 1: 'match' is missing; a group is told by"):
        prepare(section(tmp_path, extract=None, splits={"by": "group", "group_key": "match"}))
