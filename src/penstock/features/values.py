"""Values: what stands between reading a column and encoding it, and the columns that features give.

B is the number of rows, S the number of steps of all sequences, V the number of values, D the width of numbers.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
NumberArray = NDArray[Any]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Strings:
    """String i is data[starts[i]:ends[i]], UTF-8. An empty string is a missing value. Views, never copies."""

    data: Bytes
    starts: Int64Array
    ends: Int64Array

    def __post_init__(self) -> None:
        for array in (self.data, self.starts, self.ends):
            array.flags.writeable = False  # kernels are compiled for one type of array

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> str:
        return self.data[self.starts[index] : self.ends[index]].tobytes().decode("utf-8", errors="replace")

    def take(self, indices: NumberArray) -> "Strings":
        """The strings at these positions, or where a mask is true."""
        return Strings(self.data, self.starts[indices], self.ends[indices])


@dataclass(frozen=True, slots=True)
class Values:
    """The values of all rows of an input, in order: strings, int64, float32 or float64.

    `lengths` counts the items of each row or, in a sequence, of each step; `steps` then counts the steps of each row.
    Strings of a column may still hold several values: `separators` stand between them, the outermost first, that of
    steps before that of values; () means that every string is one value. So the kernels split and encode in one pass.
    """

    items: Strings | NumberArray
    lengths: Int32Array
    steps: Int32Array | None = None
    weights: NumberArray | None = None
    """Of each item, where a map column has them; its values, where the feature looks something up in it."""
    separators: tuple[bytes, ...] = ()
    time_unit: int = 0
    """Where the items are dates or times: how many seconds one of them counts, from 1970 on."""

    @property
    def num_rows(self) -> int:
        return len(self.lengths if self.steps is None else self.steps)

    def repeated(self, counts: Int32Array) -> "Values":
        """The values of row i, `counts[i]` times: what belongs to a row, for each of its steps."""
        rows = np.repeat(np.arange(len(counts)), counts)
        lengths, ends = self.lengths[rows], np.cumsum(self.lengths, dtype=np.int64)
        # Items of one row stand together: from where those of the row begin, minus where they come to stand.
        picked = np.repeat(
            (ends - self.lengths)[rows] - (np.cumsum(lengths, dtype=np.int64) - lengths), lengths
        )
        picked += np.arange(len(picked))
        weights = None if self.weights is None else self.weights[picked]
        return replace(self, items=_take(self.items, picked), lengths=lengths, weights=weights)


def _take(items: Strings | NumberArray, indices: NumberArray) -> Strings | NumberArray:
    return items.take(indices) if isinstance(items, Strings) else items[indices]


@dataclass(frozen=True, slots=True)
class SparseColumn:
    """Ids: `lengths[i]` of the values belong to row i, in order; a row may have none.

    Of a sequence, `lengths` counts the values of each step, and `steps` the steps of each row.
    """

    values: Int64Array
    lengths: Int32Array
    weights: Float32Array | None = None
    steps: Int32Array | None = None


@dataclass(frozen=True, slots=True)
class DenseColumn:
    """Numbers: D in every row, as a (B, D) array; of a sequence, D in every step, as (S, D)."""

    values: Float32Array
    steps: Int32Array | None = None


Column = SparseColumn | DenseColumn


@lru_cache(maxsize=8)
def one_per_row(num_rows: int) -> Int32Array:
    """The lengths of a column with one value in every row: one 1, seen as often as there are rows.

    It is read-only, takes no memory for its rows, and is the same object for all such columns.
    """
    return np.broadcast_to(np.ones(1, np.int32), num_rows)


def row_of_value(lengths: Int32Array, index: int) -> int:
    return int(np.searchsorted(np.cumsum(lengths, dtype=np.int64), index, side="right"))


def sum_by_row(counts: NumberArray, lengths: Int32Array) -> Int32Array:
    """Sums the counts of the values of each row: lengths once some values became none or several."""
    totals = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=totals[1:])
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.asarray(totals[ends] - totals[ends - lengths], np.int32)


def with_first_steps(lengths: Int32Array, steps: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Lengths and steps where every sequence has a step: an empty one gets one without a value."""
    empty = steps == 0
    if not empty.any():
        return lengths, steps
    positions = np.cumsum(steps, dtype=np.int64)[empty]
    return np.insert(lengths, positions, 0), np.maximum(steps, 1)


class BadItem(Exception):
    """A value that cannot be used: in which row or step it stands, itself, and why. Features name their column.

    `source`: which input of the feature it is in.
    """

    def __init__(self, row: int | None, value: object, problem: str, source: int = 0) -> None:
        self.row, self.value, self.problem, self.source = row, value, problem, source
        super().__init__(f"row {row}: {value!r} {problem}")

    def of(self, lengths: Int32Array) -> "BadItem":
        """The same in the row that it belongs to, where `row` counted parts of rows."""
        row = None if self.row is None else row_of_value(lengths, self.row)
        return BadItem(row, self.value, self.problem, self.source)


class BadValue(DataError):
    """One value of a batch is wrong. `row` counts from the first row of the batch."""

    def __init__(self, column: str, row: int | None, value: object, problem: str) -> None:
        self.column = column
        self.row = row
        self.value = value
        self.problem = problem
        position = "" if row is None else f"row {row} of the batch: "
        subject = "" if value is None else f"value {value!r} "
        super().__init__(f"{position}column '{column}': {subject}{problem}")
