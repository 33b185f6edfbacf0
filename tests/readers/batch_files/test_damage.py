"""Files that are torn, cut short, foreign or damaged: one line that names file and array, and no wrong value."""

import contextlib
import struct
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.readers.batch_files import load_batch, read_header, save_batch
from tests.readers.batch_files.samples import assert_same, game_arrays

EVERY_WAY = [("native", "none"), ("native", "zlib"), ("native", "zstd"), ("npz", "none"), ("npz", "zlib")]
every_way = pytest.mark.parametrize(("layout", "compression"), EVERY_WAY)


@pytest.fixture
def saved(tmp_path, layout, compression):
    path = tmp_path / "batch_0007.batch"
    save_batch(path, game_arrays(40), layout=layout, compression=compression)
    return path


@every_way
def test_a_file_cut_short_at_any_place_is_refused(saved):
    content = saved.read_bytes()

    for num_bytes in [*range(100), *range(100, len(content), 37), len(content) - 1]:
        saved.write_bytes(content[:num_bytes])
        with pytest.raises(DataError, match=r"batch_0007\.batch"):
            read_header(saved)


@every_way
@settings(max_examples=60)
@given(position=st.integers(0, 1 << 20), flipped=st.integers(1, 255))
def test_a_changed_byte_is_refused_or_changes_nothing(
    tmp_path_factory, layout, compression, position, flipped
):
    path = tmp_path_factory.mktemp("flip") / "batch"
    save_batch(path, game_arrays(3), layout=layout, compression=compression)
    content = bytearray(path.read_bytes())
    content[position % len(content)] ^= flipped
    path.write_bytes(content)

    with contextlib.suppress(DataError):
        loaded = load_batch(path)
        if layout == "native" or list(loaded) == list(game_arrays(3)):  # zip has no checksum of names
            assert_same(loaded, game_arrays(3))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no batch file, neither native nor .npz: it is empty"),
        (b"a,b\n1,2\n", r"is no batch file, neither native nor .npz: it begins with b'a,b\\n1,2\\n'"),
        (b"\x93PNSTOCK", "is cut short: it has 8 bytes and not even a header"),
        (
            struct.pack("<8sIII", b"\x93PNSTOCK", 2, 0, 0),
            "has version 2 of the batch layout, but this Penstock reads 1; upgrade it",
        ),
        (
            struct.pack("<8sIII", b"\x93PNSTOCK", 1, 0xFFFFFFFF, 0),
            "its header is damaged or cut short; write it again",
        ),
        (b"PK\x03\x04 and so on", "is not a whole .npz file"),
    ],
)
def test_foreign_files(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)

    with pytest.raises(DataError, match=f"file: {message}"):
        read_header(tmp_path / "file")


@pytest.mark.parametrize(
    ("true", "false"),
    [
        (b'"offset":256', b'"offset":999'),
        (b'"num_bytes":24', b'"num_bytes":16'),
        (b'"dtype":"<i8"', b'"dtype":"|O8"'),
        (b'"shape":[3]', b'"shape":[-3,-1]'),
    ],
)
def test_a_header_that_makes_no_sense_is_refused_though_its_checksum_is_right(tmp_path, true, false):
    save_batch(tmp_path / "b", {"x": np.arange(3)})
    content = (tmp_path / "b").read_bytes()
    assert true in content
    text = content[20:256].replace(true, false)[:236]
    prefix = struct.pack("<8sIII", b"\x93PNSTOCK", 1, len(text), zlib.crc32(text))
    (tmp_path / "b").write_bytes(prefix + text + content[256:])

    with pytest.raises(DataError, match="b: array 'x': its header makes no sense; write the file again"):
        read_header(tmp_path / "b")


def test_a_missing_file_a_missing_folder_and_something_appended(tmp_path):
    with pytest.raises(DataError, match=r"none\.batch: cannot be read: No such file or directory"):
        read_header(tmp_path / "none.batch")
    save_batch(tmp_path / "b.batch", game_arrays())
    with (tmp_path / "b.batch").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(DataError, match=r"has \d+ bytes but was written with \d+: it was cut short or"):
        read_header(tmp_path / "b.batch")
    with pytest.raises(DataError, match=r"none/b\.batch: cannot be written: No such file or directory"):
        save_batch(tmp_path / "none" / "b.batch", game_arrays())


def test_archives_that_numpy_would_not_write(tmp_path):
    path = tmp_path / "b.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array(member, np.zeros(3))
    with pytest.raises(DataError, match="array 'x' is compressed in a way that NumPy does not write"):
        read_header(path)

    with zipfile.ZipFile(path, "w") as archive, archive.open("x.npy", "w") as member:
        header = {"descr": "<f4", "fortran_order": False, "shape": (-2, -3)}
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes(24))
    with pytest.raises(DataError, match=r"b\.npz: array 'x': is not a NumPy array.*: its shape is \(-"):
        read_header(path)
