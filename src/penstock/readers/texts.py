"""Texts that were decoded as dictionaries: how large rows become when they are written out, and writing them out."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_OFFSET_BYTES = 4


def written_out_ends(batch: pa.RecordBatch, schema: pa.Schema) -> NDArray[np.int64]:
    """Bytes that the texts of the first 0, 1, 2, ... rows take as the types of `schema`; others count nothing."""
    ends = np.zeros(batch.num_rows + 1, np.int64)
    for array, field in zip(batch.columns, schema, strict=True):
        if array.type != field.type:
            ends += _ends(array)
    return ends


def _ends(array: Any) -> NDArray[np.int64]:
    """The running sum of the bytes of an array's values, one more than it has values."""
    types = pa.types
    ends: NDArray[np.int64] = np.zeros(len(array) + 1, np.int64)
    if types.is_dictionary(array.type):
        ends = _running_sum(array)
    elif types.is_map(array.type):
        ends = (_ends(array.keys) + _ends(array.items))[np.asarray(array.offsets)]
    elif types.is_list(array.type) or types.is_large_list(array.type):
        ends = _ends(array.values)[np.asarray(array.offsets)]
    elif types.is_fixed_size_list(array.type):
        starts = np.arange(array.offset, array.offset + len(ends))
        ends = _ends(array.values)[starts * array.type.list_size]
    return ends


def _running_sum(array: Any) -> NDArray[np.int64]:
    value_bytes = pc.fill_null(pc.take(pc.binary_length(array.dictionary), array.indices), 0)
    ends = np.zeros(len(array) + 1, np.int64)
    np.cumsum(np.asarray(value_bytes), out=ends[1:])
    return ends + np.arange(len(ends)) * _OFFSET_BYTES


def cuts(ends: NDArray[np.int64], most_bytes: int) -> Iterator[tuple[int, int]]:
    """Consecutive rows, first and end, that take at most so many bytes written out; at least one row each."""
    start, num_rows = 0, len(ends) - 1
    while start < num_rows:
        end = int(np.searchsorted(ends, ends[start] + most_bytes, side="right")) - 1
        end = max(end, start + 1)
        yield start, end
        start = end


def write_out(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of `schema`."""
    arrays = [
        array if array.type == field.type else _compact(array).cast(field.type)
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _compact(array: Any) -> Any:
    """A copy of a slice alone: Arrow casts the items of a sliced list from the very first on."""
    return array.take(pa.array(np.arange(len(array)))) if pa.types.is_nested(array.type) else array
