"""NumPy arrays: rows of those in `.npy` and `.npz` files, and their values as Arrow arrays. Nothing is ever unpickled.

Rows are read rather than mapped: mapped pages count as memory of the process, members of an archive lie at odd
offsets, and an object store cannot be mapped. A compressed member can only be read from its start on, as a stream.
"""

import functools
import io
import os
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.batch_layouts import MAX_HEADER_BYTES, npz_members, read_npy_header, reading_archive
from penstock.readers.files import DataFile, data_suffix
from penstock.readers.storage import open_input, read_at

Values = NDArray[Any]
DType = np.dtype[Any]

_STRING_KINDS = "US"
_TYPE_OF_CODE: dict[str, Any] = {
    **{f"{kind}{size}": getattr(pa, f"{name}{8 * size}")() for kind, name in (("i", "int"), ("u", "uint"))
       for size in (1, 2, 4, 8)},
    "f2": pa.float32(),
    "f4": pa.float32(),
    "f8": pa.float64(),
    "b1": pa.bool_(),
}  # fmt: skip
_OFFSET_BYTES = 4
_LENGTH_BYTES = 8
_FOREIGN_ORDER = ">" if sys.byteorder == "little" else "<"
STREAM_BYTES = 64 * KIB  # what an open stream of a compressed member holds beside the rows it gives
_MIN_ARCHIVE_BYTES = 22  # an archive without a member
_STREAM_COPIES = 3  # a stream joins what it unpacks from pieces
_SKIP_BYTES = 16 * KIB
_MAX_OPEN_FILES = 128


@dataclass(frozen=True, slots=True)
class StoredArray:
    path: str
    title: str  # what it is called in messages
    dtype: DType
    shape: tuple[int, ...]
    is_column_major: bool
    offset: int  # of the first value: in the file, or in the compressed member
    member: str | None = None  # the compressed member of an archive that has it

    @property
    def num_rows(self) -> int:
        return self.shape[0] if self.shape else 0

    @property
    def row_bytes(self) -> int:
        return row_items(self.shape) * self.dtype.itemsize

    @property
    def reading_row_bytes(self) -> int:
        """What a row takes while it is read and made an Arrow array."""
        copies = _STREAM_COPIES if self.member is not None else 2 if self.is_column_major else 1
        return copies * self.row_bytes + making_row_bytes(self.dtype, self.shape)


def read_arrays(file: DataFile) -> dict[str, StoredArray]:
    with open_input(file.path) as source:
        if data_suffix(file.path) != ".npz":
            header = io.BytesIO(read_at(source, MAX_HEADER_BYTES, 0))
            stem = os.path.splitext(file.name)[0]
            return {stem: _array_at(header, file.path, file.path, 0, file.size_bytes)}
        arrays = {}
        with reading_archive(file.path):
            if file.size_bytes < _MIN_ARCHIVE_BYTES:
                raise zipfile.BadZipFile("File is not a zip file")
            archive = zipfile.ZipFile(cast(Any, source))  # a NativeFile has all that zipfile asks of one
            members = npz_members(file.path, archive, functools.partial(read_at, source))
            for info, label, start, content in members:
                is_stored = info.compress_type == zipfile.ZIP_STORED
                position = (start, info.file_size) if is_stored else (0, info.file_size, info.filename)
                name = info.filename.removesuffix(".npy")
                arrays[name] = _array_at(io.BytesIO(content), file.path, label, *position)
    if not arrays:
        raise DataError(f"{file.path}: has no arrays in it; .npz files hold .npy members")
    return arrays


def _array_at(
    stream: IO[bytes], path: str, title: str, start: int, num_bytes: int, member: str | None = None
) -> StoredArray:
    """The array that a stream begins with; it starts at an offset, and so many bytes of it are there."""
    header = read_npy_header(stream, title)
    array = StoredArray(path, title, *header, start + stream.tell(), member)
    expected_bytes = stream.tell() + array.num_rows * array.row_bytes
    if not header.dtype.hasobject and num_bytes < expected_bytes:
        raise DataError(
            f"{title}: is cut short: {array.num_rows} rows need {expected_bytes} bytes, but there are {num_bytes}; "
            "write it again"
        )
    return array


class ArrayFiles:
    """Open files of arrays, and of each compressed member the open stream and its position."""

    def __init__(self) -> None:
        self._files: dict[str, pa.NativeFile] = {}
        self._streams: dict[tuple[str, str], tuple[IO[bytes], int]] = {}

    def rows(self, array: StoredArray, first_row: int, end_row: int) -> Values:
        num_rows, inner = end_row - first_row, array.shape[1:]
        if not array.is_column_major:
            return self._values(array, first_row * row_items(array.shape), (num_rows, *inner))
        values = np.empty((row_items(array.shape), num_rows), array.dtype)
        for column in range(len(values)):
            values[column] = self._values(array, column * array.num_rows + first_row, (num_rows,))
        # Read axis by axis in reverse, so that turning it around gives the axes as they were.
        return values.reshape(*inner[::-1], num_rows).T

    def close(self) -> None:
        while self._streams:
            self._streams.popitem()[1][0].close()
        while self._files:
            self._files.popitem()[1].close()

    def _values(self, array: StoredArray, first: int, shape: tuple[int, ...]) -> Values:
        width = array.dtype.itemsize
        if not width:
            return np.zeros(shape, array.dtype)
        offset, num_bytes = array.offset + first * width, int(np.prod(shape)) * width
        if array.path not in self._files:
            if len(self._files) == _MAX_OPEN_FILES:
                self.close()
            self._files[array.path] = open_input(array.path)
        source = self._files[array.path]
        if array.member is None:
            data = read_at(source, num_bytes, offset)
        else:
            with reading_archive(array.path):
                data = self._unpacked(array.path, array.member, source, offset, num_bytes)
        if len(data) < num_bytes:
            raise DataError(f"{array.title}: has become shorter while it was being read")
        return np.frombuffer(data, array.dtype).reshape(shape)

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


def arrow_type(dtype: DType, shape: tuple[int, ...], file: str, column: str) -> Any:
    """A scalar, or a list of fixed size for what stands in one row of more axes."""
    if not shape:
        raise DataError.at(
            "is a single value; an array needs rows, which are its first axis", file=file, column=column
        )
    item_type: Any = pa.string() if dtype.kind in _STRING_KINDS else _TYPE_OF_CODE.get(dtype.str[1:])
    if item_type is None:
        advice = (
            "which cannot be used; usable are integers, float16 to float64, bool, and texts of fixed width"
        )
        if dtype.hasobject:
            advice = "Python objects, which could run code when they are read; write numbers, or texts of dtype str"
        raise DataError.at(f"has dtype {dtype}, {advice}", file=file, column=column)
    if len(shape) == 1:
        return item_type
    if row_items(shape) == 0:
        raise DataError.at(
            f"has shape {shape}: no values in its rows; leave it out", file=file, column=column
        )
    return pa.list_(item_type, row_items(shape))


def row_items(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape[1:], dtype=np.int64))


def given_row_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """The most that a row takes as Arrow has it."""
    if dtype.kind in _STRING_KINDS:
        return row_items(shape) * (dtype.itemsize + _OFFSET_BYTES)
    return row_items(shape) * (2 if dtype.str[1:] == "f2" else 1) * dtype.itemsize


def making_row_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """What `to_arrow` takes beyond the values themselves; 0: it gives views of them."""
    if dtype.kind in _STRING_KINDS:
        # Arrow's buffers double while they grow.
        return 2 * given_row_bytes(dtype, shape) + row_items(shape) * _LENGTH_BYTES
    is_converted = dtype.byteorder == _FOREIGN_ORDER or dtype.str[1:] in ("f2", "b1")
    return given_row_bytes(dtype, shape) if is_converted else 0


def to_arrow(values: Values, file: str, column: str, first_row: int) -> "pa.Array[Any]":
    """The rows of an array, inner axes one behind the other; `first_row` is what messages call the first of them."""
    flat = values.reshape(-1)
    num_items = row_items(values.shape)
    if values.dtype.kind in _STRING_KINDS:
        items = _strings(flat, file, column, first_row, num_items)
    else:
        if values.dtype.byteorder == _FOREIGN_ORDER:
            flat = flat.astype(values.dtype.newbyteorder("="))
        items = pa.array(flat.astype(np.float32) if values.dtype.str[1:] == "f2" else flat)
    return items if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(items, num_items)


def _strings(flat: Values, file: str, column: str, first_row: int, num_items: int) -> "pa.Array[Any]":
    """Strings of fixed width, without the zeros behind them."""
    code_type = np.uint32 if flat.dtype.kind == "U" else np.uint8
    codes = np.ascontiguousarray(flat).view(code_type) if flat.dtype.itemsize else np.empty(0, code_type)
    try:
        if np.count_nonzero(codes) == np.strings.str_len(flat).sum():
            return pa.array(flat).cast(pa.string())
    except pa.ArrowInvalid:
        pass
    # The first string that cannot be read is looked for value by value: reading ends here.
    for index, text in enumerate(flat.tolist()):
        problem = None
        try:
            encoded = text.encode() if isinstance(text, str) else text
            encoded.decode()
            problem = "has a zero character inside; texts end at it" if b"\0" in encoded else None
        except UnicodeError:
            problem = "is not UTF-8; write texts as dtype str"
        if problem is not None:
            row = first_row + index // max(1, num_items)
            raise DataError.at(problem, file=file, row=row, column=column, value=text)
    raise DataError.at("has texts that cannot be read", file=file, column=column)


def check_lengths(num_rows: Mapping[str, int]) -> int:
    """The number of rows that all arrays have; the keys are what messages call them."""
    first_name, first = next(iter(num_rows.items()))
    for name, number in num_rows.items():
        if number != first:
            raise DataError(
                f"{first_name} has {first} rows but {name} has {number}; arrays that are read together need equal "
                "lengths"
            )
    return first
