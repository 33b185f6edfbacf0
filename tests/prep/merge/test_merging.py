"""Batch files become one store."""

import re
import zipfile

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.readers.batch_files import load_batch, save_batch
from penstock.runtime.progress import ProgressLogger
from tests.prep.merge.inputs import all_bytes, concatenated, load_split, write_batches
from tests.readers.batch_files.samples import assert_same, game_arrays


def test_archives_are_whole_and_can_be_mapped(tmp_path):
    batches = write_batches(tmp_path / "in")

    merge(tmp_path / "in", tmp_path / "out")

    names = ["X_train.npy", "labels_train.npz", "manifest.json", "masks_train.npz"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    with zipfile.ZipFile(tmp_path / "out" / "masks_train.npz") as archive:
        assert archive.testzip() is None
    mapped = load_batch(tmp_path / "out" / "masks_train.npz", mmap=True)
    assert isinstance(mapped["target"], np.memmap)
    assert mapped["target"].ctypes.data % 64 == 0
    np.testing.assert_array_equal(mapped["target"], concatenated(batches)["masks_target"])


def test_the_same_samples_give_the_same_bytes_however_they_were_stored(tmp_path):
    write_batches(tmp_path / "native", compression="zstd")
    write_batches(tmp_path / "npz", layout="npz")

    merge(tmp_path / "native", tmp_path / "one")
    merge(tmp_path / "npz", tmp_path / "other")

    assert all_bytes(tmp_path / "other") == all_bytes(tmp_path / "one")


def test_heads_and_other_arrays_as_files(tmp_path):
    arrays = {**game_arrays(4), "weights": np.arange(4.0)}
    save_batch(tmp_path / "batch_0.batch", arrays)

    merge(tmp_path, tmp_path / "out", options=MergeOptions(heads="npy"))

    labels = np.load(tmp_path / "out" / "labels_train" / "target.npy", mmap_mode="r")
    np.testing.assert_array_equal(labels, arrays["labels_target"])
    assert np.load(tmp_path / "out" / "weights_train.npy").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("layout", ["native", "npz"])
def test_arrays_of_any_type_and_nothing_at_all(tmp_path, layout):
    arrays = {
        "strategic_features": np.zeros((3, 0), np.float16),
        "labels_a": np.array([1, 2, 3], ">i4"),
        "masks_a": np.array([[True], [False], [True]]),
    }
    for number in range(2):
        save_batch(tmp_path / f"batch_{number}.{layout.replace('native', 'batch')}", arrays, layout=layout)

    merge(tmp_path, tmp_path / "out")

    expected = {name: np.concatenate([array, array]).astype(array.dtype) for name, array in arrays.items()}
    assert_same(load_split(tmp_path / "out"), expected)


def test_batches_without_samples_give_a_store_without_samples(tmp_path):
    write_batches(tmp_path / "in", [0, 0])
    options = MergeOptions(splits=SplitShares(), shuffle=True)

    result = merge(tmp_path / "in", tmp_path / "out", options=options)

    assert result.num_samples == {"train": 0, "val": 0, "test": 0}
    assert load_split(tmp_path / "out", "val")["strategic_features"].shape == (0, 6)


def test_progress_counts_samples(tmp_path, capsys):
    write_batches(tmp_path / "in")

    with ProgressLogger("merging", "samples", plain=True) as progress:
        merge(tmp_path / "in", tmp_path / "out", progress=progress)

    assert "merging: samples 28/28" in capsys.readouterr().err


def test_a_store_among_its_batch_files(tmp_path):
    write_batches(tmp_path / "in")

    with pytest.raises(ConfigError, match="in: output_dir is also intermediate_dir; choose another folder"):
        merge(tmp_path / "in", tmp_path / "in")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"memory_bytes": 5},
            "memory.limit: leaves 5B to a shuffle (memory_bytes); it must be at least 1MiB",
        ),
        (
            {"target": "ipc", "compression": "zlib"},
            "compression: zlib is not for target ipc; known: none, zstd, lz4",
        ),
        ({"compression": "zstd"}, "compression: zstd is not for target npy; known: none"),
        (
            {"target": "parquet", "compression": "zstd", "level": 99},
            "compression level is 99; zstd has 1 to 22",
        ),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        MergeOptions(**options)
