"""Columns that are in memory already: NumPy and Arrow arrays, and maps of files."""

import mmap
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.arrays.values import (
    Place,
    Values,
    arrow_type,
    given_row_bytes,
    making_row_bytes,
    to_arrow,
)
from penstock.readers.columns import project

Held: TypeAlias = "Values | pa.Array[Any] | pa.ChunkedArray[Any]"
MEMORY = "arrays in memory"
"""What data in memory is called where files have their path."""


class HeldColumn(ABC):
    """An array that somebody else holds, given out by row ranges."""

    type: Any
    num_rows: int
    row_bytes: int
    """About what a row takes as it is given out."""
    leased_row_bytes: int
    """What giving out a row takes beyond what is held already: copies, and pages of a map that are touched."""

    @abstractmethod
    def rows(self, first_row: int, end_row: int) -> "pa.Array[Any] | pa.ChunkedArray[Any]":
        """Some rows; views where the layout allows it. `type` may be another one that they can be cast to."""

    def let_go(self) -> None:  # noqa: B027 - most columns have nothing to let go
        """Give back what giving out rows has touched; views of it stay valid."""


class NumpyColumn(HeldColumn):
    """A NumPy array, in memory or mapped."""

    def __init__(self, values: Values, name: str) -> None:
        self.type = arrow_type(values.dtype, values.shape, MEMORY, name)
        self.num_rows = len(values)
        self.row_bytes = given_row_bytes(values.dtype, values.shape)
        self._values = values
        self._name = name
        self._map = _map_of(values)
        is_copied = making_row_bytes(values.dtype, values.shape) > 0 or not values.flags.c_contiguous
        copied_bytes = making_row_bytes(values.dtype, values.shape) or self.row_bytes
        mapped_bytes = self.row_bytes if self._map is not None else 0
        self.leased_row_bytes = (copied_bytes if is_copied else 0) + mapped_bytes

    def rows(self, first_row: int, end_row: int) -> "pa.Array[Any]":
        """Some rows, as views of numbers that lie in order; else copies."""
        return to_arrow(self._values[first_row:end_row], Place(MEMORY, self._name, first_row))

    def let_go(self) -> None:
        """Pages of a map count in the process's memory until they are given back; the file has them."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)


class ArrowColumn(HeldColumn):
    """An Arrow array, whole or in chunks."""

    def __init__(self, values: "pa.Array[Any] | pa.ChunkedArray[Any]", name: str) -> None:
        self.type = project(pa.schema([(name, values.type)]), [name], MEMORY).field(0).type
        self.num_rows = len(values)
        self.row_bytes = -(-values.nbytes // max(1, self.num_rows))
        self.leased_row_bytes = 0 if values.type == self.type else 2 * self.row_bytes
        self._values = values

    def rows(self, first_row: int, end_row: int) -> "pa.Array[Any] | pa.ChunkedArray[Any]":
        """Some rows, as they are."""
        return self._values.slice(first_row, end_row - first_row)


def held_column(name: str, values: Held) -> HeldColumn:
    """The column that an array is."""
    if isinstance(values, np.ndarray):
        return NumpyColumn(values, name)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return ArrowColumn(values, name)
    kind = type(values).__name__
    raise DataError.at(f"is a {kind}; give a NumPy or an Arrow array", file=MEMORY, column=name)


def _map_of(values: Values) -> mmap.mmap | None:
    """The map of a file whose pages an array shows; changes in a private copy would be lost, so that is none."""
    at: Any = values
    while isinstance(at, np.ndarray):
        if isinstance(at, np.memmap) and isinstance(at.base, mmap.mmap):
            return None if at.mode == "c" else at.base
        at = at.base
    return None
