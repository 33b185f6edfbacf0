"""Files whose pieces have their places before a value is written."""

import os
import zipfile
import zlib

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import GIB
from penstock.store.batch_file.files import load_batch
from penstock.store.checksums import joined_checksum
from penstock.store.merge.layouts.npy_layout import npy_files
from penstock.store.merge.layouts.store_file import Fixed, file_checksum_of
from penstock.store.schema import ArraySpec, StoreSchema


def checksum_of_zeros(num_bytes):
    """By doubling, so that many take no longer."""
    crc, length = zlib.crc32(bytes(1)), 1
    total, total_bytes = 0, 0
    while num_bytes:
        if num_bytes & 1:
            total, total_bytes = joined_checksum(total, crc, length), total_bytes + length
        crc, length, num_bytes = joined_checksum(crc, crc, length), 2 * length, num_bytes >> 1
    return total


def write_fixed(path, file, checksums):
    """Everything but the values, which are zeros in a file with holes."""
    with path.open("wb") as stream:
        os.truncate(stream.fileno(), file.num_bytes)
        for piece in file.pieces(checksums):
            if isinstance(piece, Fixed):
                os.pwrite(stream.fileno(), piece.content, piece.offset)


def test_archives_of_more_than_four_gigabytes(tmp_path):
    num_rows = 5 * GIB
    schema = StoreSchema(
        (ArraySpec("labels_a", np.dtype(np.int8)), ArraySpec("labels_ö", np.dtype(np.int16)))
    )
    (file,) = npy_files(schema, {"train": num_rows})
    checksums = {place.key: checksum_of_zeros(place.num_bytes) for place in file.places}

    write_fixed(tmp_path / file.name, file, checksums)

    with zipfile.ZipFile(tmp_path / file.name) as archive:
        assert archive.namelist() == ["a.npy", "ö.npy"]
        assert archive.getinfo("ö.npy").header_offset > 5 * GIB
        assert archive.getinfo("ö.npy").file_size == 10 * GIB + 128
    mapped = load_batch(tmp_path / file.name, mmap=True)
    assert mapped["ö"].shape == (num_rows,)
    assert mapped["ö"][-1] == 0
    assert [place.offset % 64 for place in file.places] == [0, 0]


def test_checksums_of_files_follow_from_those_of_values(tmp_path):
    schema = StoreSchema(
        tuple(ArraySpec(name, np.dtype(np.int8), 3) for name in ("strategic_features", "masks_a", "masks_b"))
    )
    for file in npy_files(schema, {"train": 1000}):
        checksums = {place.key: zlib.crc32(bytes(place.num_bytes)) for place in file.places}
        write_fixed(tmp_path / file.name, file, checksums)

        assert file_checksum_of(file, checksums) == zlib.crc32((tmp_path / file.name).read_bytes())


NO_NAMES = ["../a", "a/../b", "/a", "..", ".", "", ".hidden", "a\\b", "a\0", "a\nb"]


@pytest.mark.parametrize("name", ["a/b", *NO_NAMES])
def test_heads_that_are_no_names_of_files(name):
    schema = StoreSchema((ArraySpec(f"labels_{name}", np.dtype(np.int8)),))

    with pytest.raises(DataError, match=r"^array 'labels_.*cannot be a file of its own"):
        npy_files(schema, {"train": 1}, heads_in_one_file=False)


@pytest.mark.parametrize("name", NO_NAMES)
def test_heads_that_are_no_names_of_members(name):
    schema = StoreSchema((ArraySpec(f"labels_{name}", np.dtype(np.int8)),))

    with pytest.raises(DataError, match=r"^array 'labels_.*cannot be in an \.npz file"):
        npy_files(schema, {"train": 1})


@pytest.mark.parametrize("name", ["a/b", "strategic_features_/../../a", *NO_NAMES])
def test_arrays_that_are_no_names_of_files(name):
    schema = StoreSchema((ArraySpec(name, np.dtype(np.int8)),))

    with pytest.raises(DataError, match="cannot be a file of its own"):
        npy_files(schema, {"train": 1})


def test_heads_in_folders_are_members_of_an_archive():
    (file,) = npy_files(StoreSchema((ArraySpec("labels_unit/type", np.dtype(np.int8)),)), {"train": 1})

    assert [place.member for place in file.places] == ["unit/type"]


def test_an_array_must_not_take_the_name_of_another_file():
    schema = StoreSchema(tuple(ArraySpec(name, np.dtype(np.int8)) for name in ("strategic_features", "X")))

    with pytest.raises(
        DataError, match=r"array 'X' would be the file X_train.npy, which is that of another array"
    ):
        npy_files(schema, {"train": 1})


def test_groups_of_features_are_files_of_their_own():
    half, single = np.dtype("float16"), np.dtype("float32")
    schema = StoreSchema(
        (
            ArraySpec("strategic_features", single, 3),
            ArraySpec("strategic_features_board", half, 2),
            ArraySpec("elo", single),
        )
    )

    assert [file.name for file in npy_files(schema, {"val": 1})] == [
        "X_val.npy",
        "X_board_val.npy",
        "elo_val.npy",
    ]
