"""What `inspect` says about batch files and stores."""

import tracemalloc

import numpy as np
import pytest

from penstock.config.sizes import MIB
from penstock.observe.inspect import LookOptions, inspect
from penstock.prep import profile
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.readers.batch_files import save_batch
from penstock.readers.store_schema import ArraySpec, StoreManifest, StoreSchema
from tests.prep.merge.inputs import write_batches

ARRAYS = {
    "strategic_features": np.array([[0.5, -2], [3, np.nan]], np.float32),
    "labels_move": np.array([7, 1], np.int16),
    "masks_move": np.array([[0, 1, 1], [1, 1, 1]], np.int8),
    "labels_unit": np.array([0, 40], np.int16),
}


@pytest.fixture
def batch_file(tmp_path):
    save_batch(tmp_path / "batch_0000.batch", ARRAYS)
    return tmp_path / "batch_0000.batch"


def test_each_array_of_a_batch_file(batch_file):
    found = inspect(batch_file).as_dict()

    assert (found["kind"], found["samples"]) == ("batch file (native)", 2)
    assert (found["heads"], found["heads_with_masks"]) == (["move", "unit"], ["move"])
    assert found["bytes_on_disk"] == batch_file.stat().st_size
    assert found["bytes_in_memory"] == 16 + 4 + 6 + 4
    assert [list(row.values()) for row in found["arrays"]] == [
        ["strategic_features", [2, 2], "float32", 16, -2.0, 3.0, 1],
        ["labels_move", [2], "int16", 4, 1, 7, 0],
        ["masks_move", [2, 3], "int8", 6, 0, 1, 0],
        ["labels_unit", [2], "int16", 4, 0, 40, 0],
    ]
    assert found["warnings"] == [
        "strategic_features: 1 NaN among the values looked at; left out of min and max"
    ]


def test_a_store_says_it_by_split(tmp_path):
    write_batches(tmp_path / "batches")
    merge(tmp_path / "batches", tmp_path / "store", options=MergeOptions(SplitShares(), shuffle=True, seed=3))

    found = inspect(tmp_path / "store").as_dict()

    assert (found["kind"], found["samples"], found["merged_batch_files"]) == ("store (npy)", 28, 6)
    assert (found["splits"], found["shuffled"]) == ({"train": 22, "val": 3, "test": 3}, "with seed 3")
    features = np.load(tmp_path / "store" / "X_val.npy")
    row = next(row for row in found["arrays"] if row["split"] == "val")
    assert (row["array"], row["min"], row["max"]) == (
        "strategic_features",
        float(features.min()),
        float(features.max()),
    )


def test_of_much_data_some_rows_are_looked_at_unless_all_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "WHOLE_BYTES", 1)
    monkeypatch.setattr(profile, "_MAX_PIECE_ROWS", 1)
    monkeypatch.setattr(profile, "_NUM_PIECES", 4)
    write_batches(tmp_path)

    some = inspect(tmp_path)
    whole = inspect(tmp_path, LookOptions(full=True, plain=True))

    assert (some.facts["rows_looked_at"], some.facts["part_looked_at"]) == (4, 4 / 28)
    assert some.notes == ["min and max from rows at 4 places; --full looks at all rows"]
    assert "rows_looked_at" not in whole.facts
    assert whole.table[0]["min"] <= some.table[0]["min"] <= some.table[0]["max"] <= whole.table[0]["max"]


def test_a_full_look_holds_a_few_megabytes(tmp_path):
    array = np.zeros((64, MIB // 4), np.float32)
    save_batch(tmp_path / "batch_0.batch", {"strategic_features": array})
    tracemalloc.start()
    try:
        inspect(tmp_path / "batch_0.batch", LookOptions(full=True, plain=True))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak_bytes < array.nbytes / 2  # about 8MiB: pieces, never the 64MiB of the whole


def test_the_columns_that_arrays_were_made_of(tmp_path):
    columns = tuple(map(str, range(12)))
    told = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more; --json tells all"
    record = save_batch(
        tmp_path / "batch_0.batch", {"strategic_features": np.ones((3, len(columns)), np.float32)}
    )
    schema = StoreSchema((ArraySpec("strategic_features", np.dtype(np.float32), len(columns), columns),))
    StoreManifest((), (record,), schema, {}).write(tmp_path)
    merge(tmp_path, tmp_path / "store")

    for path in (tmp_path, tmp_path / "store"):
        found = inspect(path)
        assert found.table[0]["columns"] == list(columns)
        assert f"  columns of strategic_features: {told}" in found.as_text().splitlines()
