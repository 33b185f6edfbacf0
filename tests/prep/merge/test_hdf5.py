"""Stores of HDF5 files."""

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import all_bytes, concatenated, load_split, write_batches
from tests.readers.batch_files.samples import assert_same

h5py = pytest.importorskip("h5py")

SIZES = (70, 40, 0, 130)


def load_file(folder, split="train"):
    """In the order of batch files: HDF5 sorts names."""
    with h5py.File(folder / f"{split}.h5") as file:
        arrays = {name: file[name][:] for name in file}
    return {name: arrays[name] for name in sorted(arrays, key=lambda name: name != "strategic_features")}


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_data_sets_are_the_batches_behind_each_other(tmp_path, compression):
    batches = write_batches(tmp_path / "in", SIZES, compression=compression)

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="hdf5"))

    assert_same(load_file(tmp_path / "out"), concatenated(batches))
    assert sorted(all_bytes(tmp_path / "out")) == ["manifest.json", "train.h5"]
    assert verify(tmp_path / "out", tmp_path / "in") == []


@pytest.mark.parametrize("shuffle", [pytest.param(False, marks=pytest.mark.slow), True])
def test_splits_order_and_workers_as_in_arrays(tmp_path, shuffle):
    write_batches(tmp_path / "in", SIZES)
    how = {"splits": SplitShares(), "shuffle": shuffle}

    merge(tmp_path / "in", tmp_path / "arrays", options=MergeOptions(**how))
    merge(tmp_path / "in", tmp_path / "one", options=MergeOptions(target="hdf5", **how))
    merge(
        tmp_path / "in",
        tmp_path / "two",
        options=MergeOptions(target="hdf5", workers=2, part_bytes=2000, **how),
    )

    for split in ("train", "val", "test"):
        assert_same(load_file(tmp_path / "one", split), load_split(tmp_path / "arrays", split))
    assert all_bytes(tmp_path / "two") == all_bytes(tmp_path / "one")


def test_values_can_be_mapped(tmp_path):
    batches = write_batches(tmp_path / "in", SIZES)

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="hdf5"))

    with h5py.File(tmp_path / "out" / "train.h5") as file:
        offset = file["strategic_features"].id.get_offset()
    assert offset % 64 == 0
    mapped = np.memmap(tmp_path / "out" / "train.h5", np.float32, "r", offset, (240, 6))
    np.testing.assert_array_equal(mapped, concatenated(batches)["strategic_features"])


def test_a_split_without_samples(tmp_path):
    write_batches(tmp_path / "in", [1])

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="hdf5", splits=SplitShares()))

    assert load_file(tmp_path / "out", "val")["strategic_features"].shape == (0, 6)
    assert verify(tmp_path / "out", tmp_path / "in") == []


@pytest.mark.parametrize("shuffle", [False, True])
def test_an_array_without_values(tmp_path, shuffle):
    arrays = {"strategic_features": np.zeros((3, 0), np.float32), "labels_a": np.arange(3)}
    save_batch(tmp_path / "batch_0.batch", arrays)

    merge(tmp_path, tmp_path / "out", options=MergeOptions(target="hdf5", shuffle=shuffle))

    found = load_file(tmp_path / "out")
    assert found["strategic_features"].shape == (3, 0)
    assert sorted(found["labels_a"].tolist()) == [0, 1, 2]
    assert verify(tmp_path / "out", tmp_path) == []


def test_types_that_hdf5_does_not_have(tmp_path):
    save_batch(tmp_path / "batch_0.batch", {"names": np.array(["a", "b"])})

    with pytest.raises(
        DataError,
        match="array 'names' is <U1 per sample, which target hdf5 does not hold; leave it out, or merge to npy",
    ):
        merge(tmp_path, tmp_path / "out", options=MergeOptions(target="hdf5"))


@pytest.mark.parametrize("name", ["labels_a/b", ".", "../a"])
def test_names_that_are_folders_of_hdf5(tmp_path, name):
    save_batch(tmp_path / "batch_0.batch", {name: np.ones(3)})

    with pytest.raises(DataError, match=f"^array {name!r} cannot be a data set: .* without / "):
        merge(tmp_path, tmp_path / "out", options=MergeOptions(target="hdf5"))
