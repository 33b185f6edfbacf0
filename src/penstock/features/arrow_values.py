"""Any Arrow column that can be an input -> Values, without a copy where Arrow's memory can be viewed.

Rows that are null have no values; null elements of lists are left out, except as steps of a sequence. Integers of all
widths, booleans, dates (days) and timestamps (whole seconds) become int64; floating and decimal numbers float32 or
float64; strings stay strings.
"""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.features.values import (
    BadValue,
    NumberArray,
    Strings,
    Values,
    one_per_row,
    row_of_value,
    sum_by_row,
)
from penstock.readers.columns import ArrowArray

_FLOATS = {pa.float32().id, pa.float64().id}
_USABLE = "integers, floating and decimal numbers, booleans, strings, dates, timestamps, lists of these, maps"
KEY_END = b"\x00"
"""Between the key and the item of an entry of a map: a key may have a colon in it."""

_DAY_MILLISECONDS = 86_400_000
_SECONDS = {pa.date32().id: 86_400, pa.date64().id: 86_400, pa.timestamp("s").id: 1}
"""How many seconds one counts, of types that are dates and times."""
_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def read_values(
    array: ArrowArray,
    column: str,
    separator: bytes = b"",
    step_separator: bytes | None = None,
    null: float | None = None,
    is_map: bool = False,
) -> Values:
    """The values of a column. A null of a column of floating numbers counts as `null`, where that is given.

    A map is its keys, weighted by its items; with `is_map` those may also be strings, and are then part of the keys'.

    With `step_separator` the column is a sequence: a string is split into steps by it, a list has a step in each
    element, which may be a list itself or a string of several values; a number is one step.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pt.is_dictionary(kind):
        array = array.dictionary.take(array.indices)
        return read_values(array, column, separator, step_separator, is_map=is_map)
    if is_map and pt.is_map(kind):  # in a sequence too: it belongs to the whole row
        return _map_entries(array, column)
    if step_separator is not None:
        if kind.id in _TEXTS:
            separators = (step_separator, separator)
            return Values(strings_of(array), one_per_row(len(array)), separators=separators)
        if kind.id in _NESTED and not pt.is_map(kind):
            steps, elements = _elements(array)
            inner = read_values(elements, column, separator, is_map=is_map)
        else:
            inner = read_values(array, column, separator)
            steps = inner.lengths
            inner = replace(inner, lengths=one_per_row(len(inner.items)))
        return replace(inner, steps=steps)
    if kind.id in _NUMBERS:
        null = null if kind.id in _FLOATS else None
        values = _numbers(array, null)
        if array.null_count == 0 or null is not None or isinstance(values, Strings):  # null strings are empty
            return Values(values, one_per_row(len(array)), time_unit=_SECONDS.get(kind.id, 0))
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return Values(values[valid], valid.astype(np.int32), time_unit=_SECONDS.get(kind.id, 0))
    if kind.id in _TEXTS:
        return Values(strings_of(array), one_per_row(len(array)), separators=(separator,))
    if kind.id in _NESTED:
        return _nested_values(array, column)
    if pt.is_null(kind):
        return Values(np.empty(0, np.int64), np.zeros(len(array), np.int32))
    raise BadValue(column, None, None, f"is of type {kind}, which cannot be a feature. Usable: {_USABLE}")


def _elements(array: ArrowArray) -> tuple[NumberArray, ArrowArray]:
    """How many elements each list has, and all of them."""
    counts: ArrowArray = pc.list_value_length(array)
    if counts.null_count:
        counts = counts.fill_null(0)
    return np.asarray(counts.to_numpy(zero_copy_only=False), np.int32), array.flatten()


def _nested_values(array: ArrowArray, column: str) -> Values:
    """The elements of lists, or the keys of maps with their items as weights."""
    kind, weights = array.type, None
    if not pt.is_map(kind):
        lengths, elements = _elements(array)
    else:
        lengths, elements, items = _keys_and_items(array)
        if not (pt.is_integer(items.type) or pt.is_floating(items.type) or pt.is_decimal(items.type)):
            raise BadValue(column, None, None, f"is a {kind}; the items of a map are weights, so numbers")
        weights = np.asarray(pc.cast(items, pa.float64()).to_numpy(zero_copy_only=False), np.float32)
        usable = np.isfinite(weights)
        if not usable.all():
            first = int(np.argmin(usable))
            row = row_of_value(lengths, first)
            raise BadValue(column, row, elements[first].as_py(), "has a weight that is null or not finite")
    if pt.is_dictionary(elements.type):
        elements = elements.dictionary.take(elements.indices)
    if pt.is_nested(elements.type):
        raise BadValue(column, None, None, f"is a {kind}; elements are single values, except in sequences")
    inner = read_values(elements, column)
    if inner.lengths is not one_per_row(len(elements)):
        lengths = sum_by_row(inner.lengths, lengths)
    return replace(inner, lengths=lengths, weights=weights, separators=())


def _keys_and_items(array: ArrowArray) -> tuple[NumberArray, Any, Any]:
    kind = array.type
    key = pa.field("key", kind.key_type, nullable=False)
    array = pc.cast(array, pa.list_(pa.struct([key, pa.field("value", kind.item_type)])))
    lengths, elements = _elements(array)
    return lengths, *elements.flatten()


def _map_entries(array: ArrowArray, column: str) -> Values:
    """Keys with numbers as weights, where null is NaN; or strings: key, KEY_END and value, where null is empty."""
    lengths, keys, items = _keys_and_items(array)
    keys, items = (
        each.dictionary_decode() if pt.is_dictionary(each.type) else each for each in (keys, items)
    )
    if keys.type.id not in _TEXTS and not pt.is_integer(keys.type):
        raise BadValue(column, None, None, f"is a {array.type}; the keys of a map are strings or integers")
    is_whole = pt.is_integer(items.type) or pt.is_boolean(items.type)
    if is_whole or pt.is_floating(items.type) or pt.is_decimal(items.type):
        if items.null_count or not is_whole:
            items = pc.cast(items, pa.float64())
        numbers = _numbers(items, np.nan)
        if not isinstance(numbers, Strings):
            return Values(read_values(keys, column).items, lengths, weights=numbers)
    elif items.type.id not in _TEXTS:
        raise BadValue(column, None, None, f"is a {array.type}; the values of a map are strings or numbers")
    strings = [pc.cast(each, pa.large_string()).fill_null("") for each in (keys, items)]
    entries = pc.binary_join_element_wise(*strings, pa.scalar(KEY_END.decode(), pa.large_string()))
    return Values(strings_of(entries), lengths)


def strings_of(array: ArrowArray) -> Strings:
    """Nulls are empty strings: both are missing values."""
    if pt.is_string_view(array.type) or pt.is_binary_view(array.type):
        array = pc.cast(array, pa.large_binary())
    if array.null_count:
        is_string = pt.is_string(array.type) or pt.is_large_string(array.type)
        array = array.fill_null("" if is_string else b"")
    _, offsets, data = array.buffers()
    width = np.int64 if pt.is_large_string(array.type) or pt.is_large_binary(array.type) else np.int32
    bounds = _view(offsets, width, array.offset, len(array) + 1).astype(np.int64)
    return Strings(_view(data, np.uint8, 0, data.size if data else 0), bounds[:-1], bounds[1:])


def _view(buffer: pa.Buffer | None, dtype: Any, offset: int, size: int) -> NumberArray:
    """A read-only view of Arrow memory: always read-only, so that compiled kernels see one type."""
    if buffer is None or size == 0 or buffer.size == 0:
        values = np.zeros(size, dtype)
    else:
        values = np.frombuffer(cast(Any, buffer), dtype, size, offset * np.dtype(dtype).itemsize)
    values.flags.writeable = False
    return values


def _numbers(array: ArrowArray, null: float | None) -> NumberArray | Strings:
    """The slots of an array of numbers, null or not; strings where an unsigned one is past int64.

    Decimals are integers where they have no digits after the point and fit; times are whole seconds or days since
    1970, rounded down, in UTC.
    """
    kind = array.type
    if kind.id in _DECIMALS:
        is_whole = kind.scale == 0 and kind.precision <= 18
        array = pc.cast(array, pa.int64() if is_whole else pa.float64())
    elif pt.is_boolean(kind):
        array = pc.cast(array, pa.uint8())
    elif pt.is_uint64(kind) and (pc.max(array).as_py() or 0) > np.iinfo(np.int64).max:
        return strings_of(pc.cast(array, pa.large_string()))
    stored, given = _STORED[array.type.id]
    bits, buffer = array.buffers()
    values = _view(buffer, stored, array.offset, len(array))
    if null is not None and array.null_count:
        # The bits that tell nulls, as a mask: Arrow takes twice as long to fill them.
        first_byte, first_bit = divmod(array.offset, 8)
        num_bytes = -(-(first_bit + len(array)) // 8)
        valid = np.unpackbits(np.frombuffer(bits, np.uint8, num_bytes, first_byte), bitorder="little")
        valid = valid[first_bit : first_bit + len(array)].view(np.bool_)
        return np.where(valid, values, values.dtype.type(null))
    if pt.is_timestamp(kind):
        return np.floor_divide(values, _TICKS_PER_SECOND[kind.unit])
    if pt.is_date64(kind):
        return np.floor_divide(values, _DAY_MILLISECONDS)
    return values if stored is given else values.astype(given)


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
_STORED: dict[int, tuple[Any, Any]] = {
    **{kind.id: (kind.to_pandas_dtype(), np.int64) for kind in _INTEGERS},
    **{kind.id: (np.int64, np.int64) for kind in (pa.uint64(), pa.date64(), pa.timestamp("s"))},
    pa.date32().id: (np.int32, np.int64),
    pa.float64().id: (np.float64, np.float64),
    pa.float32().id: (np.float32, np.float32),
    pa.float16().id: (np.float16, np.float32),
}
"""How Arrow stores numbers, and as what they are given."""

_DECIMALS = frozenset(
    kind.id for kind in (pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1))
)
_NUMBERS = frozenset({*_STORED, *_DECIMALS, pa.bool_().id})
_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())
_TEXTS = frozenset(kind.id for kind in (*_STRINGS, *_BINARIES))
_ITEM = pa.int8()
_LISTS = (
    pa.list_(_ITEM),
    pa.large_list(_ITEM),
    pa.list_(_ITEM, 1),
    pa.list_view(_ITEM),
    pa.large_list_view(_ITEM),
)
_NESTED = frozenset(kind.id for kind in (*_LISTS, pa.map_(_ITEM, _ITEM)))
