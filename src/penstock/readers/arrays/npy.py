"""The `.npy` format: where the values of an array lie, from its header alone."""

import io
from dataclasses import dataclass
from typing import IO

from penstock.config.errors import DataError
from penstock.readers.arrays.values import DType, row_items
from penstock.readers.files import DataFile
from penstock.readers.npy_members import MAX_HEADER_BYTES, read_npy_header
from penstock.readers.storage import open_input, read_at


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
        header = read_at(source, min(file.size_bytes, MAX_HEADER_BYTES), 0)
    array = parse_header(io.BytesIO(header), file.path, file.path)
    array.check_length(file.size_bytes)
    return array


def parse_header(
    stream: IO[bytes], path: str, place: str, start: int = 0, member: str | None = None
) -> StoredArray:
    """The header that a stream begins with; `start` is where it lies in the file."""
    header = read_npy_header(stream, place)
    return StoredArray(
        path, place, header.dtype, header.shape, header.is_column_major, start + stream.tell(), member
    )
