"""Batch files become one store."""

import zipfile

import numpy as np
import pytest

from penstock.store.batch_file import load_batch
from penstock.store.merge import merge
from tests.store.merge.inputs import concatenated, load_split, write_batches
from tests.store.samples import assert_same


@pytest.mark.parametrize(
    ("layout", "compression"),
    [("native", "none"), ("native", "zstd"), ("native", "lz4"), ("npz", "none"), ("npz", "zlib")],
)
def test_a_store_is_its_batches_behind_each_other(tmp_path, layout, compression):
    batches = write_batches(tmp_path / "in", layout=layout, compression=compression)

    result = merge(tmp_path / "in", tmp_path / "out")

    assert_same(load_split(tmp_path / "out"), concatenated(batches))
    assert result.num_samples == {"train": 28}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "X_train.npy",
        "labels_train.npz",
        "manifest.json",
        "masks_train.npz",
    ]


def test_archives_are_whole_and_can_be_mapped(tmp_path):
    batches = write_batches(tmp_path / "in")

    merge(tmp_path / "in", tmp_path / "out")

    with zipfile.ZipFile(tmp_path / "out" / "masks_train.npz") as archive:
        assert archive.testzip() is None
    mapped = load_batch(tmp_path / "out" / "masks_train.npz", mmap=True)
    assert isinstance(mapped["target"], np.memmap)
    assert mapped["target"].ctypes.data % 64 == 0
    np.testing.assert_array_equal(mapped["target"], concatenated(batches)["masks_target"])
