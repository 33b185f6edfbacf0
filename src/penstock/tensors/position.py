"""Which rows of the data a batch holds."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.readers.origin import locate


@dataclass(frozen=True, slots=True)
class Position:
    """The row ids of a batch (readers.origin) in order: an interval if they are consecutive, else all."""

    first: int
    num_rows: int
    scattered: NDArray[np.int64] | None = None
    file_paths: tuple[str, ...] = ()
    """The files that row ids count, for messages; where they are not known, a file is told by its number."""

    @classmethod
    def of(cls, row_ids: NDArray[np.int64], file_paths: tuple[str, ...] = ()) -> Self:
        """The smallest form that holds these ids."""
        if not len(row_ids):
            return cls(0, 0, None, file_paths)
        first = int(row_ids[0])
        if int(row_ids[-1]) - first == len(row_ids) - 1 and bool((np.diff(row_ids) == 1).all()):
            return cls(first, len(row_ids), None, file_paths)
        return cls(first, len(row_ids), row_ids.copy(), file_paths)

    def __str__(self) -> str:
        """For messages: rows are counted from 0."""
        file_index, first_row = locate(self.first)
        known = file_index < len(self.file_paths)
        file = self.file_paths[file_index] if known else f"file {file_index}"
        if self.scattered is None:
            return f"rows {first_row} to {first_row + self.num_rows - 1} of {file}"
        return f"{self.num_rows} scattered rows, the first of them row {first_row} of {file}"

    def row_ids(self) -> NDArray[np.int64]:
        """One id for each row."""
        if self.scattered is not None:
            return self.scattered
        return np.arange(self.first, self.first + self.num_rows, dtype=np.int64)
