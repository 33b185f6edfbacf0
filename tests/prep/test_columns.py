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
from penstock.prep.columns import column_numbers, find_roles, side_by_side
from penstock.prep.merge.merging import merge
from penstock.prep.prepare import prepare
from penstock.prep.sections import SampleSchema
from penstock.prep.tasks import FileFailed
from penstock.readers.store_schema import StoreSchema
from tests.prep.raw import content, prepared_arrays, section
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
    else:
        pq.write_table(table, path)


def batch_contents(folder: Path) -> Iterator[bytes]:
    """The bytes of the batch files, in order."""
    return (found for name, found in content(folder).items() if name.startswith("batch_"))


each_format = pytest.mark.parametrize("suffix", [".csv", ".parquet"])


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


def test_files_in_an_object_store(tmp_path: Path, object_store: ObjectStore):
    suffix, bucket = ".parquet", "raw-parquet"
    write_parts(tmp_path / "raw", suffix)
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
def test_a_column_that_only_later_files_have(
    tmp_path: Path, further: dict[str, Any], schema: dict[str, Any], problem: str
):
    (tmp_path / "raw").mkdir()
    write_rows(tmp_path / "raw" / "0.parquet", ROWS)
    write_rows(tmp_path / "raw" / "1.parquet", ROWS | further)

    with pytest.raises(FileFailed) as error:
        prepare(section(tmp_path, extract=None, schema=schema))

    assert str(error.value) == f"{tmp_path}/raw/1.parquet: {problem}"


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


def columns_of(folder: Path) -> dict[str, tuple[str, ...]]:
    """What the store of a folder says of where its arrays came from."""
    merge(folder / "batches", folder / "store")
    document = json.loads((folder / "store" / "manifest.json").read_text())
    return {spec.name: spec.columns for spec in StoreSchema.from_document(document["schema"]).arrays}


def test_the_store_tells_which_column_is_which(tmp_path: Path):
    write_parts(tmp_path / "raw", ".csv")

    prepare(section(tmp_path, extract=None))

    first, *others = columns_of(tmp_path).values()
    assert first == ("price", "age")
    assert {*others} == {()}


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
            "has no column 'prize', which preprocessing.schema.feature_columns names or the first file has",
        ),
        (
            ROWS,
            {"labels": {"buys": "int16"}},
            "has no column 'buys', which preprocessing.schema.label_columns names or the first file has",
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


def test_heads_that_are_not_declared_are_heads_too():
    columns = {"price": [1.0], "labels_buy": [1], "labels_sell": [0], "hold": [0], "masks_buy": [[1, 0]]}

    found = roles(columns, labels={"hold": "int32", "sell": "int32"}, masks={})

    assert found.labels == {"hold": "hold", "sell": "labels_sell", "buy": "labels_buy"}
    assert (found.features, found.masks) == (("price",), {"buy": "masks_buy"})


def test_columns_side_by_side():
    whole, halves = column_numbers(pa.array([1, 2]), "a", "x"), column_numbers(pa.array([0.5, 1.5]), "a", "y")
    pairs = column_numbers(pa.array([[7, 8], [9, 10]]), "a", "z")

    assert side_by_side([whole, halves, pairs]).tolist() == [[1, 0.5, 7, 8], [2, 1.5, 9, 10]]
    assert side_by_side([whole]).tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("column", "filled"),
    [
        (pa.array([1, None, 3]), [1, -0.5, 3]),
        (pa.array([True, None]), [1, -0.5]),
        (pa.nulls(2), [-0.5, -0.5]),
        (pa.array([[9], [1, None], [None, 2]])[1:], [[1, -0.5], [-0.5, 2]]),
        (pa.array([[9, 9], [1, None]], pa.list_(pa.int8(), 2))[1:], [[1, -0.5]]),
    ],
)
def test_a_number_stands_for_features_that_are_missing(column: pa.Array, filled: list):
    assert column_numbers(column, "a.csv", "x", is_feature=True, fill_value=-0.5).tolist() == filled


FILL = "set preprocessing.schema.fill_value to the number"
CORRECT = "correct it, or leave the row out with a function"


@pytest.mark.parametrize(
    ("values", "keys", "problem"),
    [
        ([1, None], {}, f"row 11: column 'x': is null; {CORRECT}"),
        ([[1], [2, 3]], {}, "row 11: column 'x': has 2 values but row 10 has 1; all must have as many"),
        ([[1], [None]], {}, f"row 11: column 'x': holds a null in its list; {CORRECT}"),
        ([[[1]], [[2]]], {}, "column 'x': holds lists of lists; give one list for a row"),
        ([1, None], {"is_feature": True}, f"row 11: column 'x': is null; {FILL}"),
        ([[1], [None]], {"is_feature": True}, f"row 11: column 'x': holds a null in its list; {FILL}"),
        (
            [[1], None],
            {"is_feature": True, "fill_value": 0.0},
            "row 11: column 'x': is null; a list cannot be filled",
        ),
        (["a"], {"is_feature": True, "fill_value": 0.0}, "column 'x': holds string, not numbers"),
    ],
)
def test_what_is_no_number(values: list, keys: dict[str, Any], problem: str):
    with pytest.raises(DataError) as error:
        column_numbers(pa.array(values), "a.csv", "x", 10, **keys)

    assert str(error.value).startswith(f"a.csv: {problem}")
