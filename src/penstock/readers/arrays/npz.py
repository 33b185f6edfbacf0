"""The `.npz` format: a zip archive of `.npy` members.

A member that is stored as it is lies at a fixed place of the file, so that its rows are read like those of a `.npy`
file. A compressed one can only be read from its start on, as a stream.
"""

import io
import zipfile
from typing import Any, cast

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.arrays.npy import StoredArray, parse_header
from penstock.readers.files import DataFile
from penstock.readers.npy_members import MAX_HEADER_BYTES, check_readable, member_offset, reading_archive
from penstock.readers.storage import open_input, read_at

_SKIP_BYTES = 16 * KIB
_LEAST_ARCHIVE_BYTES = 22
"""An archive without a member."""

STREAM_BYTES = 64 * KIB
"""What an open stream holds beside the rows it gives: its window, and what it is skipping."""


def read_npz(file: DataFile) -> dict[str, StoredArray]:
    """The arrays of an archive by their names."""
    with reading_archive(file.path), open_input(file.path) as source:
        if file.size_bytes < _LEAST_ARCHIVE_BYTES:
            raise zipfile.BadZipFile("File is not a zip file")
        archive = open_archive(source)
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        if not members:
            raise DataError(f"{file.path}: has no arrays in it; .npz files hold .npy members")
        return {info.filename.removesuffix(".npy"): _member(file, source, archive, info) for info in members}


def _member(
    file: DataFile, source: pa.NativeFile, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> StoredArray:
    place = f"{file.path}: array '{info.filename.removesuffix('.npy')}'"
    check_readable(info, place)
    if info.compress_type == zipfile.ZIP_STORED:
        start = member_offset(lambda num_bytes, offset: read_at(source, num_bytes, offset), info)
        header = read_at(source, min(info.file_size, MAX_HEADER_BYTES), start)
        array = parse_header(io.BytesIO(header), file.path, place, start)
        array.check_length(start + info.file_size)
        return array
    with archive.open(info) as stream:
        array = parse_header(stream, file.path, place, member=info.filename)
    array.check_length(info.file_size)
    return array


def open_archive(source: pa.NativeFile) -> zipfile.ZipFile:
    """The archive in an open file; a NativeFile has all that zipfile asks of one."""
    return zipfile.ZipFile(cast(Any, source))


class MemberStream:
    """A compressed array, read forward; going back starts it anew."""

    def __init__(self, archive: zipfile.ZipFile, array: StoredArray) -> None:
        self._archive = archive
        self._array = array
        self._stream: Any = None
        self._position = 0

    def read(self, offset: int, num_bytes: int) -> bytes:
        """Bytes of the member; what lies in front of them is unpacked and let go."""
        with reading_archive(self._array.path):
            if self._stream is None or offset < self._position:
                self.close()
                self._stream = self._archive.open(cast(str, self._array.member))
                self._position = 0
            while self._position < offset:
                self._position += self._read_some(min(_SKIP_BYTES, offset - self._position))
            data: bytes = self._stream.read(num_bytes)
            self._position += len(data)
            return data

    def _read_some(self, num_bytes: int) -> int:
        num_read = len(self._stream.read(num_bytes))
        if not num_read:
            raise EOFError(f"'{self._array.member}' ends too early")
        return num_read

    def close(self) -> None:
        """Let go of the stream."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
