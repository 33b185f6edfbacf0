"""The `.npy` format: where the values of an array lie, from its header alone."""

import io
from dataclasses import dataclass
from typing import IO

from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.arrays.values import DType, row_items
from penstock.readers.files import DataFile
from penstock.readers.storage import open_input, read_at

HEADER_BYTES = 16 * KIB
"""More than NumPy allows a header to have."""

_READ_HEADER = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array in a file: all that reading some of its rows takes."""

    path: str
    place: str
    """What it is called in messages."""
    dtype: DType
    shape: tuple[int, ...]
    is_column_major: bool
    """NumPy's Fortran order: the values of a row lie apart."""
    offset: int
    """Of the first value: in the file, or in the compressed member."""
    member: str | None = None
    """The compressed member of an archive that has it: it is read from its start on."""

    @property
    def num_rows(self) -> int:
        """The length of the first axis."""
        return self.shape[0] if self.shape else 0

    @property
    def row_bytes(self) -> int:
        """Of a row in the file."""
        return row_items(self.shape) * self.dtype.itemsize

    def check_length(self, num_bytes: int) -> None:
        """Refuse an array of which only so many bytes are there."""
        expected_bytes = self.offset + self.num_rows * self.row_bytes
        if not self.dtype.hasobject and num_bytes < expected_bytes:
            raise DataError(
                f"{self.place}: is cut short: {self.num_rows} rows need {expected_bytes} bytes, but there are "
                f"{num_bytes}; write it again"
            )


def read_npy(file: DataFile) -> StoredArray:
    """What the header of a `.npy` file says."""
    with open_input(file.path) as source:
        header = read_at(source, min(file.size_bytes, HEADER_BYTES), 0)
    array = parse_header(io.BytesIO(header), file.path, file.path)
    array.check_length(file.size_bytes)
    return array


def parse_header(
    stream: IO[bytes], path: str, place: str, start: int = 0, member: str | None = None
) -> StoredArray:
    """The header that a stream begins with; `start` is where it lies in the file."""
    try:
        version = npy_format.read_magic(stream)
        if version not in _READ_HEADER:
            raise DataError(
                f"{place}: is a NumPy array of named fields; write each field as an array of its own"
            )
        shape, is_column_major, dtype = _READ_HEADER[version](stream)
    except ValueError as error:
        raise DataError(f"{place}: is not a NumPy array, or is cut short: {_first_line(error)}") from error
    return StoredArray(
        path, place, dtype, shape, is_column_major and len(shape) > 1, start + stream.tell(), member
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["no reason is known"])[0]
