"""Values that lie in a file as they are, read from any sample on."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.config.errors import DataError
from penstock.store.batch_file.values import Values
from penstock.store.contents.contents import CHUNK_BYTES, Interval


@dataclass(frozen=True, slots=True)
class FileArray:
    """Where the values of an array lie."""

    path: Path
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def row_bytes(self) -> int:
        """Of one sample."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def chunks(self, first: int, end: int) -> Iterator[Values]:
        """Samples from `first` up to `end`, a few megabytes at a time."""
        if not self.row_bytes:
            return
        chunk_rows = max(1, CHUNK_BYTES // self.row_bytes)
        for start in range(first, end, chunk_rows):
            yield self._read(start, min(chunk_rows, end - start))

    def _read(self, first: int, count: int) -> Values:
        num_values = count * math.prod(self.shape[1:])
        try:
            values = np.fromfile(
                self.path, self.dtype, num_values, offset=self.offset + first * self.row_bytes
            )
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        if len(values) != num_values:
            raise DataError(f"{self.path}: is cut short in array '{self.name}'; write it again")
        return values.reshape(count, *self.shape[1:])


@dataclass(frozen=True, slots=True)
class FileRows:
    """A block: some samples of arrays that lie in files as they are."""

    arrays: tuple[FileArray, ...]
    first_row: int
    num_rows: int

    @property
    def held_bytes(self) -> int:
        """One chunk; a sample is never divided."""
        return max([CHUNK_BYTES, *(array.row_bytes for array in self.arrays)])

    def chunks(self, intervals: Sequence[Interval]) -> Iterator[tuple[str, Values]]:
        """Values of one array after the other."""
        for array in self.arrays:
            for first, end in intervals:
                for values in array.chunks(self.first_row + first, self.first_row + end):
                    yield array.name, values


def file_blocks(arrays: tuple[FileArray, ...], num_rows: int) -> list[FileRows]:
    """All samples, so cut that each block takes a few megabytes."""
    row_bytes = max(1, sum(array.row_bytes for array in arrays))
    block_rows = max(1, CHUNK_BYTES // row_bytes)
    return [
        FileRows(arrays, first, min(block_rows, num_rows - first)) for first in range(0, num_rows, block_rows)
    ]
