"""Stores of merged samples: which files a path means, and how their arrays are called as columns."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.readers.files import list_files
from penstock.readers.origin import ROW_COLUMN
from penstock.store.schema import ArrayNames, sample_schema
from tests.readers.object_store import ObjectStore
from tests.readers.samples import open_path, survey_path

HEADS = {"action": 3, "unit": 2}
COLUMNS = ["strategic_features", "labels_action", "labels_unit", "masks_action", "masks_unit"]


def features(num_rows: int) -> Any:
    return np.arange(num_rows * 4, dtype=np.float32).reshape(num_rows, 4)


def write_store(folder: Path, heads: str = "npz", names: ArrayNames | None = None, **rows_of: int) -> Path:
    """A store as `penstock merge` leaves it; `heads` is the option of this name."""
    folder.mkdir(exist_ok=True)
    for split, num_rows in rows_of.items():
        labels = {head: np.arange(num_rows, dtype=np.int16) % width for head, width in HEADS.items()}
        masks = {head: np.ones((num_rows, width), np.int8) for head, width in HEADS.items()}
        np.save(folder / f"X_{split}.npy", features(num_rows))
        for kind, arrays in (("labels", labels), ("masks", masks)):
            if heads == "npz":
                np.savez(folder / f"{kind}_{split}.npz", **arrays)
            else:
                (folder / f"{kind}_{split}").mkdir()
                for head, array in arrays.items():
                    np.save(folder / f"{kind}_{split}" / f"{head}.npy", array)
    schema = sample_schema(4, list(HEADS), HEADS, names=names)
    (folder / "manifest.json").write_text(json.dumps({"schema": schema.as_document()}))
    return folder


def table_of(path: Any) -> pa.Table:
    reader = open_path(path)
    return pa.Table.from_batches(reader, reader.schema).drop_columns(ROW_COLUMN)


@pytest.mark.parametrize("heads", ["npz", "npy"])
@pytest.mark.parametrize(("split", "num_rows"), [("train", 5), ("val", 3)])
def test_a_glob_names_a_split_and_columns_are_called_alike_in_all(
    tmp_path: Path, heads: str, split: str, num_rows: int
) -> None:
    rows = table_of(write_store(tmp_path, heads, train=5, val=3) / f"*_{split}*")

    assert rows.column_names == COLUMNS
    assert rows["strategic_features"].to_pylist() == features(num_rows).tolist()
    assert rows["labels_action"].to_pylist() == [row % 3 for row in range(num_rows)]
    assert rows["masks_unit"].to_pylist() == [[1, 1]] * num_rows


@pytest.mark.parametrize("heads", ["npz", "npy"])
def test_the_folder_will_do_where_there_is_one_split(tmp_path: Path, heads: str) -> None:
    rows = table_of(write_store(tmp_path, heads, train=5))

    assert (rows.column_names, rows.num_rows) == (COLUMNS, 5)


def test_a_folder_with_several_splits_is_refused(tmp_path: Path) -> None:
    write_store(tmp_path, train=5, val=3, test=2)

    with pytest.raises(DataError) as error:
        list_files(str(tmp_path))
    assert (
        str(error.value)
        == f"{tmp_path}: is a store with the splits test, train, val; name one of them, as {tmp_path}/*_test*"
    )


def test_splits_that_are_both_named_are_parts_of_one_data_set(tmp_path: Path) -> None:
    write_store(tmp_path, train=5, val=3, test=2)
    path = f"{tmp_path}/*_train*,{tmp_path}/*_val*"

    assert table_of(path).num_rows == 8
    assert [file.path for file in survey_path(path).files] == [f"{tmp_path}/*_train*", f"{tmp_path}/*_val*"]


def test_one_file_of_a_store_has_its_columns_under_the_same_names(tmp_path: Path) -> None:
    write_store(tmp_path, train=5, val=3)

    assert table_of(tmp_path / "labels_val.npz").column_names == ["labels_action", "labels_unit"]
    assert table_of(tmp_path / "X_val.npy").column_names == ["strategic_features"]


def test_stores_of_several_days_are_several_parts(tmp_path: Path) -> None:
    for day, num_rows in (("day1", 2), ("day2", 3)):
        write_store(tmp_path / day, train=num_rows, val=1)

    assert table_of(tmp_path / "day*" / "*_train*").num_rows == 5


def test_the_names_of_the_schema_are_those_of_the_columns(tmp_path: Path) -> None:
    names = ArrayNames(features="board", labels="chosen_", masks="legal_")

    assert table_of(write_store(tmp_path, names=names, train=2)).column_names == [
        "board",
        "chosen_action",
        "chosen_unit",
        "legal_action",
        "legal_unit",
    ]


@pytest.mark.parametrize("manifest", [None, "{}", "[1]", "no json"])
def test_without_the_manifest_of_a_store_columns_bear_the_names_of_files_and_members(
    tmp_path: Path, manifest: str | None
) -> None:
    write_store(tmp_path, train=2)
    (tmp_path / "masks_train.npz").unlink()
    (tmp_path / "manifest.json").unlink()
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)

    assert table_of(tmp_path).column_names == ["X_train", "action", "unit"]


def test_a_manifest_of_another_version(tmp_path: Path) -> None:
    write_store(tmp_path, train=2)
    (tmp_path / "manifest.json").write_text('{"schema": {"names": {"colours": "c_"}}}')

    with pytest.raises(DataError, match=r"manifest\.json: was written by another version of Penstock; merge"):
        open_path(tmp_path)


def test_lengths_that_differ_name_both_arrays(tmp_path: Path) -> None:
    write_store(tmp_path, train=5)
    np.save(tmp_path / "X_train.npy", features(4))

    with pytest.raises(
        DataError, match=r"X_train.npy has 4 rows but .*labels_train.npz: array 'action' has 5"
    ):
        open_path(tmp_path)


@pytest.mark.parametrize("heads", ["npz", "npy"])
def test_a_store_in_an_object_store(tmp_path: Path, object_store: ObjectStore, heads: str) -> None:
    write_store(tmp_path / "one", heads, train=5)
    write_store(tmp_path / "two", heads, train=2, val=3)
    object_store.put_folder(f"game-{heads}", tmp_path)

    assert table_of(f"s3://game-{heads}/one").column_names == COLUMNS
    assert table_of(f"s3://game-{heads}/two/*_val*").num_rows == 3
    with pytest.raises(DataError, match=r"two: is a store with the splits train, val; name one"):
        list_files(f"s3://game-{heads}/two")
