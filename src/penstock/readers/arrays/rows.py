"""Rows of arrays in files, read where they lie; some files stay open between reads."""

import zipfile
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.arrays.npy import StoredArray
from penstock.readers.arrays.npz import MemberStream, open_archive
from penstock.readers.arrays.values import DType, Values, making_row_bytes
from penstock.readers.storage import open_input, read_at

_MOST_OPEN_FILES = 128
_STREAM_COPIES = 3
"""A stream joins what it unpacks from pieces."""


class ArrayFiles:
    """Open files of arrays; the one that was not used for longest is closed first."""

    def __init__(self) -> None:
        self._files: dict[str, pa.NativeFile] = {}
        self._archives: dict[str, zipfile.ZipFile] = {}
        self._streams: dict[tuple[str, str], MemberStream] = {}

    def rows(self, array: StoredArray, first_row: int, end_row: int) -> Values:
        """Rows of an array, in its own dtype."""
        inner = array.shape[1:]
        if array.is_column_major:
            # Read axis by axis in reverse, so that turning it around gives the axes as they were.
            return self._column_major(array, first_row, end_row).reshape(*inner[::-1], end_row - first_row).T
        num_bytes = (end_row - first_row) * array.row_bytes
        data = self._bytes(array, array.offset + first_row * array.row_bytes, num_bytes)
        return _as_values(data, array.dtype, (end_row - first_row, *inner))

    def close(self) -> None:
        """Close everything; a second time does nothing."""
        for path in list(self._files):
            self._close(path)

    def _column_major(self, array: StoredArray, first_row: int, end_row: int) -> Values:
        num_columns, width = array.row_bytes // array.dtype.itemsize, array.dtype.itemsize
        values = np.empty((num_columns, end_row - first_row), array.dtype)
        for column in range(num_columns):
            offset = array.offset + (column * array.num_rows + first_row) * width
            data = self._bytes(array, offset, (end_row - first_row) * width)
            values[column] = _as_values(data, array.dtype, (end_row - first_row,))
        return values

    def _bytes(self, array: StoredArray, offset: int, num_bytes: int) -> bytes:
        source = self._open(array.path)
        if array.member is None:
            data = read_at(source, num_bytes, offset)
        else:
            data = self._stream(array, source).read(offset, num_bytes)
        if len(data) < num_bytes:
            raise DataError(f"{array.place}: has become shorter while it was being read")
        return data

    def _open(self, path: str) -> pa.NativeFile:
        source = self._files.pop(path, None)
        if source is None:
            if len(self._files) == _MOST_OPEN_FILES:
                self._close(next(iter(self._files)))
            source = open_input(path)
        self._files[path] = source
        return source

    def _stream(self, array: StoredArray, source: pa.NativeFile) -> MemberStream:
        key = (array.path, array.member or "")
        if key not in self._streams:
            if array.path not in self._archives:
                self._archives[array.path] = open_archive(source)
            self._streams[key] = MemberStream(self._archives[array.path], array)
        return self._streams[key]

    def _close(self, path: str) -> None:
        for key in [key for key in self._streams if key[0] == path]:
            self._streams.pop(key).close()
        if path in self._archives:
            self._archives.pop(path).close()
        self._files.pop(path).close()


def reading_row_bytes(array: StoredArray) -> int:
    """What a row takes while it is read and made an Arrow array."""
    copies = 1
    if array.member is not None:
        copies = _STREAM_COPIES
    elif array.is_column_major:
        copies = 2
    return copies * array.row_bytes + making_row_bytes(array.dtype, array.shape)


def _as_values(data: bytes, dtype: DType, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(data, dtype).reshape(shape)
