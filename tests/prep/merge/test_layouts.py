"""Files whose arrays have their offsets before a value is written."""

import zipfile
import zlib

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import GIB
from penstock.prep.merge import layouts
from penstock.prep.merge.layouts import checksum_of, finish_archive, lay_out, store_files
from penstock.prep.merge.merge_options import MergeOptions
from penstock.readers.batch_files import load_batch, read_header
from penstock.readers.store_schema import ArraySpec, StoreSchema

INT8 = np.dtype(np.int8)
NO_NAMES = ["../a", "a/../b", "/a", "..", ".", "", ".hidden", "a\\b", "a\0", "a\nb"]


def files_of(*names, num_rows=3, **options):
    schema = StoreSchema(tuple(ArraySpec(name, INT8) for name in names))
    return store_files(schema, {"train": num_rows}, MergeOptions(**options))


def test_members_of_archives_can_be_mapped(tmp_path):
    files = files_of("labels_a", "labels_ö", "labels_unit/type")
    extents = lay_out(files, tmp_path)
    path, own = tmp_path / "labels_train.npz", list(extents.values())
    checksums = dict.fromkeys(extents, zlib.crc32(bytes(3)))

    for _ in range(2):  # again after a kill
        finish_archive(path, own, checksums)

    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["a.npy", "ö.npy", "unit/type.npy"]
        assert archive.testzip() is None
    arrays = read_header(path).arrays.values()
    assert [array.offset for array in arrays] == [extent.offset for extent in own]
    assert [array.offset % 64 for array in arrays] == [0, 0, 0]
    assert load_batch(path, mmap=True)["ö"].tolist() == [0, 0, 0]
    assert checksum_of(path, own, checksums) == zlib.crc32(path.read_bytes())


@pytest.mark.parametrize("size", [3, 5 * GIB])
def test_archives_of_any_size(tmp_path, monkeypatch, size):
    monkeypatch.setattr(layouts.os, "posix_fallocate", lambda *_: None)  # a file with holes
    files = files_of("labels_a", "labels_b", num_rows=size)
    extents = lay_out(files, tmp_path)

    finish_archive(tmp_path / "labels_train.npz", list(extents.values()), dict.fromkeys(extents, 0))

    assert load_batch(tmp_path / "labels_train.npz", mmap=True)["b"].shape == (size,)


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_that_lead_out_of_the_store(name):
    for array in (name, f"strategic_features_/../{name}"):
        with pytest.raises(DataError, match="cannot be a file of its own"):
            files_of(array)
    with pytest.raises(DataError, match=r"^array 'labels_.*cannot be a file of its own"):
        files_of(f"labels_{name}", heads="npy")
    with pytest.raises(DataError, match=r"^array 'labels_.*cannot be in an \.npz file"):
        files_of(f"labels_{name}")


def test_names_of_files():
    files = files_of("strategic_features", "strategic_features_board", "elo")

    assert [file.name for file in files] == ["X_train.npy", "X_board_train.npy", "elo_train.npy"]
    with pytest.raises(DataError, match=r"'X' would be the file X_train.npy, which is that of another array"):
        files_of("strategic_features", "X")
