"""Texts that were decoded as dictionaries: how large rows become when they are written out, and writing them out."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_OFFSET_BYTES = 4


def written_out_ends(batch: pa.RecordBatch, schema: pa.Schema, while_made: bool = False) -> NDArray[np.int64]:
    """Bytes that the texts of the first 0, 1, 2, ... rows take as the types of `schema`; others count nothing.

    `while_made`: what Arrow reserves, which is the mean length in the dictionary for every value, however short.
    """
    ends = np.zeros(batch.num_rows + 1, np.int64)
    for array, field in zip(batch.columns, schema, strict=True):
        if array.type != field.type:
            ends += _ends(array, while_made)
    return ends


def _ends(array: Any, while_made: bool) -> NDArray[np.int64]:
    """The running sum of the bytes of an array's values, one more than it has values."""
    types = pa.types
    ends: NDArray[np.int64] = np.zeros(len(array) + 1, np.int64)
    if types.is_dictionary(array.type):
        ends = _running_sum(array, while_made)
    elif types.is_map(array.type):
        ends = (_ends(array.keys, while_made) + _ends(array.items, while_made))[np.asarray(array.offsets)]
    elif types.is_list(array.type) or types.is_large_list(array.type):
        ends = _ends(array.values, while_made)[np.asarray(array.offsets)]
    elif types.is_fixed_size_list(array.type):
        starts = np.arange(array.offset, array.offset + len(ends))
        ends = _ends(array.values, while_made)[starts * array.type.list_size]
    return ends


def _running_sum(array: Any, while_made: bool) -> NDArray[np.int64]:
    lengths = pc.binary_length(array.dictionary)
    value_bytes = np.asarray(pc.fill_null(pc.take(lengths, array.indices), 0))
    if while_made and len(lengths):
        value_bytes = np.maximum(value_bytes, int(np.asarray(lengths).mean()))
    ends = np.zeros(len(array) + 1, np.int64)
    np.cumsum(value_bytes, out=ends[1:])
    return ends + np.arange(len(ends)) * _OFFSET_BYTES


def longest_text_bytes(array: Any) -> int | None:
    """The length of the longest text in an array's dictionaries; None while one of them is not there yet."""
    types = pa.types
    if types.is_map(array.type):
        parts = [longest_text_bytes(array.keys), longest_text_bytes(array.items)]
        return None if None in parts else max(part or 0 for part in parts)
    if types.is_list(array.type) or types.is_large_list(array.type) or types.is_fixed_size_list(array.type):
        return longest_text_bytes(array.values)
    if not types.is_dictionary(array.type):
        return 0
    longest = pc.max(pc.binary_length(array.dictionary)).as_py()
    return None if longest is None else int(longest)


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
