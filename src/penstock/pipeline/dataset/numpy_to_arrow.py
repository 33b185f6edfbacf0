"""NumPy arrays as Arrow columns: what a map gave back, for those who want record batches."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.pipeline.dataset.ragged import Column, Columns, Ragged


def record_batch_of(columns: Columns) -> pa.RecordBatch:
    """The columns of a batch; more dimensions become lists of a fixed size, `Ragged` becomes lists."""
    return pa.RecordBatch.from_arrays([_array(column) for column in columns.values()], names=list(columns))


def _array(column: Column) -> Any:
    if isinstance(column, Ragged):
        offsets: Any = pa.array(column.offsets)
        return pa.LargeListArray.from_arrays(offsets, _array(column.values))
    if column.ndim > 1:
        return _fixed_lists(column)
    return pa.array(column)


def _fixed_lists(array: NDArray[Any]) -> Any:
    values: Any = pa.array(np.ascontiguousarray(array).reshape(-1))
    for size in reversed(array.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    return values
