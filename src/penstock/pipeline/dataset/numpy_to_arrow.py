"""NumPy arrays as Arrow columns: what a map gave back, for those who want record batches."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.pipeline.dataset.ragged import Column, Columns, Ragged


def record_batch_of(columns: Columns) -> pa.RecordBatch:
    """The columns of a batch; more dimensions become lists of a fixed size, `Ragged` becomes lists."""
    arrays = [_column(name, column) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _column(name: str, column: Column) -> Any:
    try:
        return _array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"map: column '{name}' cannot be given out as Arrow: {error}") from error


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
