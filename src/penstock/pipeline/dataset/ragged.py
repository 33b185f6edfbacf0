"""Lists of different lengths as two arrays."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int64Array: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """One list for each row: all values in a row, and where each list begins and ends in them.

    `batch["clicks"][3]` is the list of row 3, a view. Lists of lists have lists as their values.

    >>> clicks = Ragged(np.array([7, 8, 9]), np.array([0, 2, 2, 3]))
    >>> [list.tolist() for list in clicks]
    [[7, 8], [], [9]]
    """

    values: "Column"
    offsets: Int64Array
    """One more than there are rows: row i has the values from offsets[i] to offsets[i + 1]."""

    @property
    def lengths(self) -> Int64Array:
        """How many values each row has."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        shown = ", ".join(str(self[row].tolist()) for row in range(min(3, len(self))))
        return f"Ragged([{shown}{', ...' if len(self) > 3 else ''}], {len(self)} rows)"

    def __getitem__(self, row: "int | slice") -> Any:
        if isinstance(row, slice):
            start, end, step = row.indices(len(self))
            if step != 1:
                raise IndexError(f"rows are sliced one after another, not with a step of {step}")
            end = max(start, end)
            first, last = int(self.offsets[start]), int(self.offsets[end])
            return Ragged(self.values[first:last], self.offsets[start : end + 1] - first)
        if not -len(self) <= row < len(self):
            raise IndexError(f"there is no row {row}; there are {len(self)}")
        row %= len(self)
        return self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def tolist(self) -> list[Any]:
        """Plain Python lists, for looking."""
        return [values.tolist() for values in self]

    def padded(self, width: int | None = None, fill: Any = 0) -> NDArray[Any]:
        """An array of `width` columns (the longest list where it is None); lists are cut or filled at their end.

        >>> Ragged(np.array([7, 8, 9]), np.array([0, 2, 2, 3])).padded()
        array([[7, 8],
               [0, 0],
               [9, 0]])
        """
        if isinstance(self.values, Ragged):
            raise TypeError("lists of lists have no rectangle; pad the lists inside, `.values.padded()`")
        lengths = self.lengths
        columns = np.arange(int(lengths.max(initial=0)) if width is None else width)
        is_value = columns < lengths[:, None]
        result = np.full(is_value.shape, fill, self.values.dtype)
        result[is_value] = self.values[(self.offsets[:-1, None] + columns)[is_value]]
        return result


Column: TypeAlias = "NDArray[Any] | Ragged"
Columns: TypeAlias = dict[str, Column]
"""A batch: arrays of one length, by column."""
