"""What a parsed feature is made of: NumPy arrays, one set per feature and batch.

B is the number of rows, V the number of values of all rows, D the width of a dense feature.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
NumberArray = NDArray[Any]


@dataclass(frozen=True, slots=True)
class SparseColumn:
    """Ids: `lengths[i]` of the values belong to row i, in order; a row may have none."""

    values: Int64Array
    lengths: Int32Array
    weights: Float32Array | None = None


@dataclass(frozen=True, slots=True)
class DenseColumn:
    """Numbers: the same count D in every row, as a (B, D) array."""

    values: Float32Array


Column = SparseColumn | DenseColumn


@lru_cache(maxsize=8)
def one_per_row(num_rows: int) -> Int32Array:
    """The lengths of a column with one value in every row: one 1, seen as often as there are rows.

    It is read-only, takes no memory for its rows, and is the same object for all such columns.
    """
    return np.broadcast_to(np.ones(1, np.int32), num_rows)


def row_of_value(lengths: Int32Array, index: int) -> int:
    """The row that holds the value at this index."""
    return int(np.searchsorted(np.cumsum(lengths, dtype=np.int64), index, side="right"))


def sum_by_row(counts: NumberArray, lengths: Int32Array) -> Int32Array:
    """Sums the counts of the values of each row: lengths once some values became none or several."""
    totals = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=totals[1:])
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.asarray(totals[ends] - totals[ends - lengths], np.int32)


def fill_missing(column: SparseColumn, default: Int64Array, default_weights: Float32Array) -> SparseColumn:
    """Rows without a value get the default values; the others stay as they are."""
    missing = column.lengths == 0
    if not missing.any():
        return column
    lengths = np.where(missing, np.int32(len(default)), column.lengths).astype(np.int32)
    weights = column.weights
    if weights is not None:
        weights = spread_default(weights, lengths, missing, default_weights)
    return SparseColumn(spread_default(column.values, lengths, missing, default), lengths, weights)


def spread_default(
    values: NumberArray, lengths: Int32Array, missing: BoolArray, default: NumberArray
) -> NumberArray:
    """The values with the default put into the missing rows; lengths already count the defaults."""
    from_default = np.repeat(missing, lengths)
    filled = np.empty(len(from_default), values.dtype)
    filled[from_default] = np.tile(default, int(np.count_nonzero(missing)))
    filled[~from_default] = values
    return filled
