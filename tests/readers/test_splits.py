"""Stores of merged samples: which files a path means, and how their arrays are called as columns."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.readers.batch_files import save_batch
from penstock.readers.files import list_files
from penstock.readers.store_schema import ArrayNames
from tests.readers.object_store import ObjectStore
from tests.readers.samples import open_path, scan_path, table_from

HEADS = {"action": 3, "unit": 2}
COLUMNS = ["strategic_features", "labels_action", "labels_unit", "masks_action", "masks_unit"]
THREE = SplitShares(0.5, 0.25, 0.25)
NUM_ROWS = 40


def samples(names: ArrayNames) -> dict[str, Any]:
    """The arrays of a batch file; each row is told from the others by its features."""
    labels = {names.label(head): np.arange(NUM_ROWS, dtype=np.int16) % width for head, width in HEADS.items()}
    masks = {names.mask(head): np.ones((NUM_ROWS, width), np.int8) for head, width in HEADS.items()}
    features = np.arange(NUM_ROWS * 4, dtype=np.float32).reshape(NUM_ROWS, 4)
    return {names.features: features, **labels, **masks}


def write_store(
    folder: Path, heads: str = "npz", splits: SplitShares | None = None, names: ArrayNames | None = None
) -> Path:
    names = names or ArrayNames()
    batches = folder.with_name(f"{folder.name}_batches")
    batches.mkdir(parents=True)
    save_batch(batches / "batch_0000.batch", samples(names))
    merge(batches, folder, options=MergeOptions(splits, heads=heads, names=names))
    return folder


def table_of(path: Any) -> pa.Table:
    return table_from(open_path(path))


@pytest.mark.parametrize("heads", ["npz", "npy"])
def test_a_glob_names_a_split_and_columns_are_called_alike_in_all(tmp_path: Path, heads: str) -> None:
    store = write_store(tmp_path / "store", heads, THREE)
    rows = {split: table_of(store / f"*_{split}*") for split in ("train", "val", "test")}

    assert {tuple(table.column_names) for table in rows.values()} == {tuple(COLUMNS)}
    for split, table in rows.items():
        features = np.load(store / f"X_{split}.npy")
        assert table["strategic_features"].to_pylist() == features.tolist()
        assert table["labels_action"].to_pylist() == (features[:, 0] // 4 % 3).tolist()
        assert table["masks_unit"].to_pylist() == [[1, 1]] * len(features)
    assert sum(table.num_rows for table in rows.values()) == NUM_ROWS


def test_what_of_a_store_may_be_named(tmp_path: Path) -> None:
    store = write_store(tmp_path / "day1", splits=THREE)
    write_store(tmp_path / "day2", splits=THREE)
    both = f"{store}/*_train*,{store}/*_val*"
    num_rows = len(np.load(store / "X_train.npy"))

    assert table_of(both).num_rows == NUM_ROWS - len(np.load(store / "X_test.npy"))
    assert [file.path for file in scan_path(both).files] == [f"{store}/*_train*", f"{store}/*_val*"]
    assert table_of(store / "labels_val.npz").column_names == ["labels_action", "labels_unit"]
    assert table_of(store / "X_val.npy").column_names == ["strategic_features"]
    assert table_of(tmp_path / "day?" / "*_train*").num_rows == 2 * num_rows


def test_the_names_of_the_schema_are_those_of_the_columns(tmp_path: Path) -> None:
    names = ArrayNames(features="board", labels="chosen_", masks="legal_")
    columns = ["board", "chosen_action", "chosen_unit", "legal_action", "legal_unit"]

    assert table_of(write_store(tmp_path / "store", names=names)).column_names == columns


@pytest.mark.parametrize("manifest", [None, "no json", '{"arrays": [3]}'])
def test_without_the_manifest_of_a_store_columns_bear_the_names_of_files_and_members(tmp_path, manifest):
    store = write_store(tmp_path / "store")
    (store / "masks_train.npz").unlink()
    (store / "manifest.json").unlink()
    if manifest is not None:
        (store / "manifest.json").write_text(manifest)

    assert table_of(store).column_names == ["X_train", "action", "unit"]


def test_a_store_in_an_object_store(tmp_path: Path, object_store: ObjectStore) -> None:
    write_store(tmp_path / "one", "npy")
    write_store(tmp_path / "three", "npz", THREE)
    object_store.put_folder("game", tmp_path)

    assert table_of("s3://game/one").column_names == COLUMNS
    assert table_of("s3://game/three/*_val*").num_rows == len(np.load(tmp_path / "three/X_val.npy"))
    with pytest.raises(DataError, match=r"three: is a store with the splits train, val, test; name one"):
        list_files("s3://game/three")
