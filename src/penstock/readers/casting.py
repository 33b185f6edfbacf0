"""Columns as the types that readers give out (`columns.py`): only the rows of a slice are converted.

Arrow itself casts the items of a sliced list from the very first on, and cannot copy rows of string views.
"""

from typing import Any

import numpy as np
import pyarrow as pa


def with_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of `schema`; columns that have them already are not copied."""
    arrays = [as_type(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def as_type(array: Any, given_type: Any) -> Any:
    """The rows of an array as another type.

    >>> as_type(pa.array([["a"], ["b"]], pa.list_(pa.string_view())).slice(1), pa.list_(pa.string())).to_pylist()
    [['b']]
    """
    types = pa.types
    if array.type == given_type:
        return array
    if types.is_fixed_size_list(array.type):
        return _fixed_size_list(array, given_type)
    if types.is_map(array.type):
        offsets, first, count = _own_offsets(array)
        keys = as_type(array.keys.slice(first, count), given_type.key_type)
        items = as_type(array.items.slice(first, count), given_type.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, type=given_type, mask=_mask(array))
    if types.is_list(array.type) or types.is_large_list(array.type):
        offsets, first, count = _own_offsets(array)
        items = as_type(array.values.slice(first, count), given_type.value_type)
        list_class: Any = pa.ListArray if types.is_list(array.type) else pa.LargeListArray
        return list_class.from_arrays(offsets, items, type=given_type, mask=_mask(array))
    return array.cast(given_type)


def _fixed_size_list(array: Any, given_type: Any) -> Any:
    size = array.type.list_size
    items = as_type(array.values.slice(array.offset * size, len(array) * size), given_type.value_type)
    return pa.FixedSizeListArray.from_arrays(items, type=given_type, mask=_mask(array))


def _own_offsets(array: Any) -> tuple[Any, int, int]:
    """The offsets of a slice counted from its own first item; that item, and the number of items."""
    offsets = array.offsets.to_numpy()
    first = int(offsets[0])
    return pa.array(offsets - np.asarray(first, offsets.dtype)), first, int(offsets[-1]) - first


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None
