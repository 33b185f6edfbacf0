"""Columns of files as arrays, without a function of the user: which they are, their numbers, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import DataError
from penstock.prep.columns import column_numbers, find_roles
from penstock.prep.merge.merging import merge
from penstock.prep.prepare import prepare
from penstock.prep.sections import SampleSchema
from penstock.prep.watch import PrepSummary
from penstock.readers.store_schema import StoreSchema
from tests.prep.raw import content, prepared_arrays, section
from tests.readers.object_store import ObjectStore

ROWS: dict[str, Any] = {"labels_buy": [0, 1, 1], "price": [0.5, 1.5, 2.5], "age": [1, 2, 3]}
LISTS = ROWS | {"masks_buy": [[1, 0], [1, 1], [0, 1]]}
CSV = "labels_buy,price,age\n0,0.5,1\n1,1.5,2\n1,2.5,3\n"


def write_raw(folder: Path, *files: Any) -> None:
    """A CSV file for a string, a Parquet file for columns; their names count from 0."""
    (folder / "raw").mkdir(exist_ok=True)
    for number, given in enumerate(files):
        if isinstance(given, str):
            (folder / "raw" / f"{number}.csv").write_text(given)
        else:
            table = given if isinstance(given, pa.Table) else pa.table(given)
            pq.write_table(table, folder / "raw" / f"{number}.parquet")


def prepared(folder: Path, *files: Any, **keys: Any) -> PrepSummary:
    write_raw(folder, *files)
    return prepare(section(folder, extract=None, **keys))


def batch_contents(folder: Path) -> Iterator[bytes]:
    return (found for name, found in content(folder).items() if name.startswith("batch_"))


def test_columns_of_all_files_are_those_of_the_first_in_any_order(tmp_path: Path):
    other = dict(reversed(LISTS.items())) | {"new": [7] * 3}

    summary = prepared(tmp_path, LISTS, other, schema={"feature_columns": ["age", "price"]})

    assert (summary.num_files, summary.num_samples) == (2, 6)
    arrays = prepared_arrays(tmp_path / "batches")
    expected = np.stack([ROWS["age"], ROWS["price"]], axis=1).astype(np.float32)
    np.testing.assert_array_equal(arrays["strategic_features"], np.concatenate([expected, expected]))
    assert arrays["labels_buy"].tolist() == ROWS["labels_buy"] * 2
    assert arrays["masks_buy"].tolist() == LISTS["masks_buy"] * 2


def test_files_in_an_object_store(tmp_path: Path, object_store: ObjectStore):
    prepared(tmp_path, LISTS, LISTS)
    object_store.put_folder("raw-parquet", tmp_path / "raw")

    there = {"extract": None, "input_path": "s3://raw-parquet/*", "intermediate_dir": str(tmp_path / "there")}
    summary = prepare(section(tmp_path, **there, parallel=True, num_workers=1))

    assert (summary.num_files, summary.num_samples, summary.kept_tasks) == (2, 6, 0)
    assert [*batch_contents(tmp_path / "there")] == [*batch_contents(tmp_path / "batches")]
    assert prepare(section(tmp_path, **there)).kept_tasks == 1
    write_raw(tmp_path, LISTS, ROWS)
    object_store.put_folder("raw-parquet", tmp_path / "raw")
    with pytest.raises(DataError, match=r"something else: input s3://raw-parquet/1\.parquet had \d+ bytes"):
        prepare(section(tmp_path, **there))


def test_a_function_is_given_the_url_of_a_file_in_a_store(desk: Path, object_store: ObjectStore):
    object_store.put("replays", {"a.replay": b"1", "b.replay": b"2"})

    prepare(section(desk, extract="rawgame:url_length", input_path="s3://replays/*.replay"))

    assert prepared_arrays(desk / "batches")["strategic_features"].tolist() == [[21.0], [21.0]]


def test_the_store_tells_which_column_is_which(tmp_path: Path):
    prepared(tmp_path, CSV)
    merge(tmp_path / "batches", tmp_path / "store")

    document = json.loads((tmp_path / "store" / "manifest.json").read_text())
    schema = StoreSchema.from_document(document["schema"])
    assert [spec.columns for spec in schema.arrays] == [("price", "age"), ()]


def test_a_file_with_nothing_but_a_header_gives_no_samples_wherever_it_stands(tmp_path: Path):
    header = CSV.splitlines()[0]

    summary = prepared(tmp_path, header, CSV, header)

    assert (summary.num_samples, summary.empty) == (3, [f"{tmp_path}/raw/0.csv", f"{tmp_path}/raw/2.csv"])


@pytest.mark.parametrize("schema", [{}, {"feature_columns": ["gold", "wood"]}])
def test_a_column_that_is_empty_in_a_whole_file_is_filled(tmp_path: Path, schema: dict):
    empty = "gold,wood\n1,NA\n3,\n"

    prepared(tmp_path, empty, "gold,wood\n1,2\n3,4\n", empty, schema={"fill_value": -1} | schema)

    found = prepared_arrays(tmp_path / "batches")["strategic_features"].tolist()
    assert found == [[1, -1], [3, -1], [1, 2], [3, 4], [1, -1], [3, -1]]


def test_numbers_are_read_where_no_sampled_row_has_one(tmp_path: Path):
    zeros = "0" * 50  # more than 1 MiB of text, else all of it is sampled
    rows = [f"{row}.{zeros},{'2.5' if row == 15_000 else ''}\n" for row in range(30_000)]

    prepared(tmp_path, "gold,wood\n" + "".join(rows), batch_size=10_000, schema={"fill_value": -1})

    found = prepared_arrays(tmp_path / "batches")["strategic_features"][:, 1]
    assert (found[15_000], found[15_001], len(found)) == (2.5, -1, 30_000)


def large_file(odd: str) -> str:
    """20,000 rows, in one of which something else stands for a number."""
    rows = [f"{row},{odd if row == 15_000 else 2 * row},{row % 5}\n" for row in range(20_000)]
    return "gold,wood,labels_move\n" + "".join(rows)


NOT_FIRST = "is not in the first file that has samples; name the"
FEATURE_CURE = "correct it, or do without the column: preprocessing.schema.feature_columns names the features"
LABEL_CURE = "correct it, or take another column: preprocessing.schema.label_columns names those of the heads"
FILL = "set preprocessing.schema.fill_value to the number that stands for it, or leave the row out with a function"
REFUSED = {
    "a further feature": (
        [ROWS, ROWS | {"new": [7] * 3}],
        {},
        f"1.parquet: column 'new' {NOT_FIRST} features in preprocessing.schema.feature_columns",
    ),
    "a further label": (
        [ROWS, ROWS | {"labels_sell": [0] * 3}],
        {"feature_columns": ["age"]},
        f"1.parquet: column 'labels_sell', of head 'sell', {NOT_FIRST} heads in preprocessing.schema.label_columns",
    ),
    "a feature that is not there": (
        [ROWS],
        {"feature_columns": ["prize"]},
        "0.parquet: has no column 'prize', which preprocessing.schema.feature_columns names or the first file has",
    ),
    "no feature": (
        [{"labels_buy": [1]}],
        {},
        "0.parquet: no column is left for features; name them in preprocessing.schema.feature_columns",
    ),
    "a feature that is a label": (
        [ROWS],
        {"feature_columns": ["labels_buy", "age"]},
        "0.parquet: column 'labels_buy' is a feature and a label or mask; leave it out of preprocessing.schema",
    ),
    "two groups of features": (
        [ROWS],
        {"feature_groups": {"one": ["age"], "two": ["age", "price"]}},
        "0.parquet: column 'age' is in two groups of preprocessing.schema.feature_groups, 'one' and 'two'",
    ),
    "a word": (
        [large_file("abc")],
        {},
        f"0.csv: row 15000: column 'wood': value 'abc' is no number; {FEATURE_CURE}",
    ),
    "a word among labels": (
        ["gold,labels_move\n1,7\n2,\n3,left\n"],
        {},
        f"0.csv: row 2: column 'labels_move': value 'left' is no number; {LABEL_CURE}",
    ),
    "a missing number": ([large_file("")], {}, f"0.csv: row 15000: column 'wood': is null; {FILL}"),
    "a missing label": (
        ["gold,labels_move\n1,\n2,\n"],
        {"fill_value": 0},
        "0.csv: row 0: column 'labels_move': is null; correct it, or leave the row out with a function",
    ),
    "numbers as strings": (
        [{"gold": [1.0, 2.0], "wood": ["", "7"]}],
        {},
        "0.parquet: column 'wood': holds numbers written as text; declare its type in data_config.input_fields",
    ),
}


@pytest.mark.parametrize(("files", "schema", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used(tmp_path: Path, files: list, schema: dict[str, Any], problem: str):
    with pytest.raises(DataError) as error:
        prepared(tmp_path, *files, schema=schema)

    assert str(error.value).startswith(f"{tmp_path}/raw/{problem}")


def roles(columns: dict[str, Any], group_key: str | None = None, **declared: Any) -> Any:
    schema = SampleSchema.model_validate(declared)
    return find_roles(pa.table(columns).schema, schema, group_key, "rows.parquet")


def test_names_and_the_run_file_tell_what_columns_are():
    found = roles(LISTS)
    assert (found.features, found.labels, found.masks) == (
        ("price", "age"),
        {"buy": "labels_buy"},
        {"buy": "masks_buy"},
    )

    columns = {"f_10": [1.0], "f_9": [1.0], "x": [2.0], "bought": [1], "user": ["ann"]}
    found = roles(columns, "user", feature_columns=["x", "f_*"], label_columns={"buy": "bought"})
    assert found.columns == ("x", "f_9", "f_10", "bought", "user")

    columns = {"price": [1.0], "labels_buy": [1], "labels_sell": [0], "hold": [0], "masks_buy": [[1, 0]]}
    found = roles(columns, labels={"hold": "int32", "sell": "int32"}, masks={})
    assert found.labels == {"hold": "hold", "sell": "labels_sell", "buy": "labels_buy"}
    assert (found.features, found.masks) == (("price",), {"buy": "masks_buy"})


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


@pytest.mark.parametrize(
    ("values", "keys", "problem"),
    [
        ([[1], [2, 3]], {}, "row 11: column 'x': has 2 values but row 10 has 1; all must have as many"),
        ([[1], [None]], {}, "row 11: column 'x': holds a null in its list; correct it, or leave the row out"),
        ([[[1]], [[2]]], {}, "column 'x': holds lists of lists; give one list for a row"),
        ([[1], [None]], {"is_feature": True}, f"row 11: column 'x': holds a null in its list; {FILL}"),
        (
            [[1], None],
            {"is_feature": True, "fill_value": 0.0},
            "row 11: column 'x': is null; a list cannot be filled",
        ),
    ],
)
def test_lists_that_cannot_be_used(values: list, keys: dict[str, Any], problem: str):
    with pytest.raises(DataError) as error:
        column_numbers(pa.array(values), "a.csv", "x", 10, **keys)

    assert str(error.value).startswith(f"a.csv: {problem}")
