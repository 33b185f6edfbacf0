"""Stores of every target: NumPy, HDF5, Parquet and Arrow files."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge import arrow_parts
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import all_bytes, concatenated, load_split, write_batches
from tests.readers.batch_files.samples import assert_same, game_arrays

h5py = pytest.importorskip("h5py")

SIZES = (70, 40, 0, 130)


@pytest.mark.parametrize(
    ("target", "compression", "level"),
    [
        ("hdf5", "none", None),
        ("parquet", "none", None),
        ("parquet", "zstd", 3),
        ("ipc", "lz4", None),
    ],
)
def test_samples_are_those_of_the_batches(tmp_path, target, compression, level):
    batches = write_batches(tmp_path / "in", SIZES, compression="zstd" if target == "hdf5" else "none")
    options = MergeOptions(target=target, compression=compression, level=level, part_bytes=3000)

    result = merge(tmp_path / "in", tmp_path / "out", options=options)

    assert_same(load_split(tmp_path / "out"), concatenated(batches))
    assert result.num_samples == {"train": 240}
    assert verify(tmp_path / "out", tmp_path / "in") == []


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("target", ["hdf5", "parquet", "ipc"])
def test_splits_and_order_are_those_of_arrays(tmp_path, target, shuffle):
    write_batches(tmp_path / "in", SIZES)
    how = {"splits": SplitShares(), "shuffle": shuffle, "seed": 4}

    merge(tmp_path / "in", tmp_path / "arrays", options=MergeOptions(**how))
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target=target, part_bytes=3000, **how))

    for split in ("train", "val", "test"):
        assert_same(load_split(tmp_path / "out", split), load_split(tmp_path / "arrays", split))
    assert verify(tmp_path / "out", tmp_path / "in") == []


@pytest.mark.parametrize("target", ["npy", "ipc"])
def test_workers_and_memory_change_nothing(tmp_path, target):
    """Samples of two kilobytes: with less memory there are more buckets, but not more files."""
    (tmp_path / "in").mkdir()
    for number in range(4):
        arrays = {**game_arrays(700, number), "strategic_features": np.zeros((700, 500), np.float32) + number}
        save_batch(tmp_path / "in" / f"batch_{number}.batch", arrays)
    how = {"target": target, "splits": SplitShares(), "shuffle": True, "part_bytes": 1 << 20}

    merge(tmp_path / "in", tmp_path / "one", options=MergeOptions(**how))
    merge(tmp_path / "in", tmp_path / "two", options=MergeOptions(workers=2, memory_bytes=1 << 20, **how))

    assert all_bytes(tmp_path / "two") == all_bytes(tmp_path / "one")


def test_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_parts, "GROUP_BYTES", 35 * 50)
    batches = write_batches(tmp_path / "in", SIZES)

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="parquet"))

    metadata = pq.read_metadata(tmp_path / "out" / "train" / "part-00000.parquet")
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert rows == [50, 50, 50, 50, 40]
    assert_same(load_split(tmp_path / "out"), concatenated(batches))


def test_values_of_hdf5_can_be_mapped(tmp_path):
    batches = write_batches(tmp_path / "in", SIZES)

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="hdf5"))

    with h5py.File(tmp_path / "out" / "train.h5") as file:
        offset = file["strategic_features"].id.get_offset()
    assert offset % 64 == 0
    mapped = np.memmap(tmp_path / "out" / "train.h5", np.float32, "r", offset, (240, 6))
    np.testing.assert_array_equal(mapped, concatenated(batches)["strategic_features"])


def test_a_split_without_samples(tmp_path):
    write_batches(tmp_path / "in", [1])

    for target in ("npy", "hdf5"):
        options = MergeOptions(target=target, splits=SplitShares())
        merge(tmp_path / "in", tmp_path / target, options=options)
        assert load_split(tmp_path / target, "val")["strategic_features"].shape == (0, 6)
        assert verify(tmp_path / target, tmp_path / "in") == []


@pytest.mark.parametrize("target", ["hdf5", "parquet", "ipc"])
def test_arrays_of_any_type(tmp_path, target):
    arrays = {f"labels_{dtype}": np.array([0, 1, 1], dtype) for dtype in ("f2", "?", ">i4")}
    arrays |= {"masks_a": np.array([[0], [1], [0]], ">i4")}
    if target != "parquet":
        arrays |= {"strategic_features": np.zeros((3, 0), np.float32)}
    save_batch(tmp_path / "batch_0.batch", arrays)

    merge(tmp_path, tmp_path / "out", options=MergeOptions(target=target))

    found = load_split(tmp_path / "out")
    for name, array in arrays.items():
        assert found[name].dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name], array)
    assert verify(tmp_path / "out", tmp_path) == []


@pytest.mark.parametrize(
    ("target", "array", "kind"),
    [
        ("parquet", np.zeros((3, 0), np.float32), "float32 x 0 per sample"),
        ("ipc", np.array(["a", "b"]), "<U1 per sample"),
        ("hdf5", np.array(["a", "b"]), "<U1 per sample"),
    ],
)
def test_what_a_target_does_not_hold_is_refused_before_anything_is_written(tmp_path, target, array, kind):
    save_batch(tmp_path / "batch_0.batch", {"extra": array})

    message = f"array 'extra' is {kind}, which target {target} does not hold; leave it out, or merge to npy"
    with pytest.raises(DataError, match=message):
        merge(tmp_path, tmp_path / "out", options=MergeOptions(target=target))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["labels_a/b", "."])
def test_names_that_are_folders_of_hdf5(tmp_path, name):
    save_batch(tmp_path / "batch_0.batch", {name: np.ones(3)})

    with pytest.raises(DataError, match=f"^array {name!r} cannot be a data set: .* without / "):
        merge(tmp_path, tmp_path / "out", options=MergeOptions(target="hdf5"))


def test_accumulating_is_for_arrays(tmp_path):
    with pytest.raises(
        ConfigError, match="accumulative is for target npy only; leave it out with target ipc"
    ):
        merge(tmp_path / "in", tmp_path / "out", "accumulative", options=MergeOptions(target="ipc"))
