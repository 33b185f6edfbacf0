"""Arrays in `.npy` files and in `.npz` archives: where their values lie, and rows of them. Nothing is ever unpickled.

Rows are read rather than mapped: mapped pages count as memory of the process, members of an archive lie at odd
offsets, and an object store cannot be mapped. A compressed member can only be read from its start on, as a stream.
"""

import io
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.array_values import DType, Values, making_row_bytes, row_items
from penstock.readers.files import DataFile
from penstock.readers.storage import open_input, read_at

_HEADER_BYTES = 16 * KIB
"""More than NumPy allows a header to have."""
_BAD_HEADER = (ValueError, struct.error, TypeError, SyntaxError, tokenize.TokenError, RecursionError)
"""What NumPy raises of a header whose text is no longer a dict of Python."""
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError)
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Before each member of an archive: a magic word, and at its end the lengths of a name and of extra fields."""
_IS_ENCRYPTED = 0x1
_MIN_ARCHIVE_BYTES = 22
"""An archive without a member."""
STREAM_BYTES = 64 * KIB
"""What an open stream of a compressed member holds beside the rows it gives."""
_STREAM_COPIES = 3
"""A stream joins what it unpacks from pieces."""
_SKIP_BYTES = 16 * KIB
_MAX_OPEN_FILES = 128


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array in a file: all that reading some of its rows takes."""

    path: str
    title: str
    """What it is called in messages."""
    dtype: DType
    shape: tuple[int, ...]
    is_column_major: bool
    """NumPy's Fortran order: the values of a row lie apart."""
    offset: int
    """Of the first value: in the file, or in the compressed member."""
    member: str | None = None
    """The compressed member of an archive that has it."""

    @property
    def num_rows(self) -> int:
        return self.shape[0] if self.shape else 0

    @property
    def row_bytes(self) -> int:
        """Of a row in the file."""
        return row_items(self.shape) * self.dtype.itemsize

    @property
    def reading_row_bytes(self) -> int:
        """What a row takes while it is read and made an Arrow array."""
        copies = _STREAM_COPIES if self.member is not None else 2 if self.is_column_major else 1
        return copies * self.row_bytes + making_row_bytes(self.dtype, self.shape)


def _read_header(
    stream: IO[bytes], path: str, title: str, start: int, num_bytes: int, member: str | None = None
) -> StoredArray:
    """The array that a stream begins with; it starts at an offset, and so many bytes of it are there."""
    try:
        version = npy_format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise DataError(
                f"{title}: is a NumPy array of named fields; write each field as an array of its own"
            )
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, is_column_major, dtype = read(stream)
        if any(length < 0 for length in shape):
            raise ValueError(f"its shape is {shape}")
    except _BAD_HEADER as error:
        reason = (str(error).splitlines() or ["no reason is known"])[0]
        raise DataError(f"{title}: is not a NumPy array, or is cut short: {reason}") from error
    is_column_major = is_column_major and len(shape) > 1
    array = StoredArray(path, title, dtype, shape, is_column_major, start + stream.tell(), member)
    expected_bytes = stream.tell() + array.num_rows * array.row_bytes
    if not dtype.hasobject and num_bytes < expected_bytes:
        raise DataError(
            f"{title}: is cut short: {array.num_rows} rows need {expected_bytes} bytes, but there are {num_bytes}; "
            "write it again"
        )
    return array


@contextmanager
def _reading_archive(path: str) -> Iterator[None]:
    try:
        yield
    except _BAD_ARCHIVE as error:
        raise DataError(
            f"{path}: is not a whole .npz file (a zip archive): {error}; was it cut short? write it again"
        ) from error


def read_arrays(file: DataFile) -> dict[str, StoredArray]:
    """The arrays of a file by their names: from headers alone."""
    with open_input(file.path) as source:
        if file.suffix != ".npz":
            header = io.BytesIO(read_at(source, _HEADER_BYTES, 0))
            stem = os.path.splitext(file.name)[0]
            return {stem: _read_header(header, file.path, file.path, 0, file.size_bytes)}
        arrays = {}
        with _reading_archive(file.path):
            if file.size_bytes < _MIN_ARCHIVE_BYTES:
                raise zipfile.BadZipFile("File is not a zip file")
            archive = zipfile.ZipFile(cast(Any, source))  # a NativeFile has all that zipfile asks of one
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    arrays[info.filename.removesuffix(".npy")] = _read_member(
                        file.path, source, archive, info
                    )
    if not arrays:
        raise DataError(f"{file.path}: has no arrays in it; .npz files hold .npy members")
    return arrays


def _read_member(
    path: str, source: pa.NativeFile, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> StoredArray:
    title = f"{path}: array '{info.filename.removesuffix('.npy')}'"
    if info.flag_bits & _IS_ENCRYPTED:
        raise DataError(f"{title} is encrypted; write it without a password")
    if info.compress_type != zipfile.ZIP_STORED:
        with archive.open(info) as stream:
            return _read_header(stream, path, title, 0, info.file_size, info.filename)
    # A member that is stored as it is lies at a fixed offset, behind a name and extra fields.
    local_header = read_at(source, _LOCAL_HEADER.size, info.header_offset)
    magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(local_header)
    if magic != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"no member where {info.filename!r} should be")
    start = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
    header = io.BytesIO(read_at(source, min(info.file_size, _HEADER_BYTES), start))
    return _read_header(header, path, title, start, info.file_size)


class ArrayFiles:
    """Open files of arrays; the one that was not used for longest is closed first."""

    def __init__(self) -> None:
        self._files: dict[str, pa.NativeFile] = {}
        self._streams: dict[tuple[str, str], tuple[IO[bytes], int]] = {}
        """Of each compressed member the open stream and its position."""

    def rows(self, array: StoredArray, first_row: int, end_row: int) -> Values:
        """Rows of an array, in its own dtype."""
        num_rows, inner = end_row - first_row, array.shape[1:]
        if not array.is_column_major:
            data = self._bytes(array, array.offset + first_row * array.row_bytes, num_rows * array.row_bytes)
            return _as_values(data, array.dtype, (num_rows, *inner))
        width = array.dtype.itemsize
        values = np.empty((row_items(array.shape), num_rows), array.dtype)
        for column in range(len(values)):
            offset = array.offset + (column * array.num_rows + first_row) * width
            values[column] = _as_values(
                self._bytes(array, offset, num_rows * width), array.dtype, (num_rows,)
            )
        # Read axis by axis in reverse, so that turning it around gives the axes as they were.
        return values.reshape(*inner[::-1], num_rows).T

    def close(self) -> None:
        for path in list(self._files):
            self._close(path)

    def _bytes(self, array: StoredArray, offset: int, num_bytes: int) -> bytes:
        source = self._files.pop(array.path, None)
        if source is None:
            if len(self._files) == _MAX_OPEN_FILES:
                self._close(next(iter(self._files)))
            source = open_input(array.path)
        self._files[array.path] = source
        if array.member is None:
            data = read_at(source, num_bytes, offset)
        else:
            with _reading_archive(array.path):
                data = self._unpacked(array.path, array.member, source, offset, num_bytes)
        if len(data) < num_bytes:
            raise DataError(f"{array.title}: has become shorter while it was being read")
        return data

    def _unpacked(self, path: str, member: str, source: pa.NativeFile, offset: int, num_bytes: int) -> bytes:
        """Bytes of a compressed member; those before them are unpacked and dropped, from the start if need be."""
        stream, position = self._streams.pop((path, member), (None, 0))
        if stream is None or offset < position:
            if stream is not None:
                stream.close()
            archive = zipfile.ZipFile(cast(Any, source))
            stream, position = archive.open(member), 0
        while position < offset:
            num_skipped = len(stream.read(min(_SKIP_BYTES, offset - position)))
            if not num_skipped:
                raise EOFError(f"'{member}' ends too early")
            position += num_skipped
        data = stream.read(num_bytes)
        self._streams[path, member] = stream, position + len(data)
        return data

    def _close(self, path: str) -> None:
        for key in [key for key in self._streams if key[0] == path]:
            self._streams.pop(key)[0].close()
        self._files.pop(path).close()


def _as_values(data: bytes, dtype: DType, shape: tuple[int, ...]) -> Values:
    return np.frombuffer(data, dtype).reshape(shape) if dtype.itemsize else np.zeros(shape, dtype)
