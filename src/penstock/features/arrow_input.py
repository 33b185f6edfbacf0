"""Any Arrow column that can be a feature -> NumPy arrays, without a copy where Arrow's memory can be viewed.

Rows that are null have no values; null elements of lists are left out. Integers of all widths, booleans,
dates (days) and timestamps (whole seconds) become int64; floating and decimal numbers float32 or float64;
strings stay text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.features.feature import (
    BadValue,
    Float32Array,
    Int32Array,
    NumberArray,
    one_per_row,
    row_of_value,
    sum_by_row,
)
from penstock.features.text import Text
from penstock.readers.columns import is_list

ArrowArray = Any
"""pa.Array: its type stubs know fewer methods than the classes have."""

_FLOATS = {pa.float32().id: np.float32, pa.float64().id: np.float64}
_USABLE = "integers, floating and decimal numbers, booleans, strings, dates, timestamps, lists of these, maps"
_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of all rows of a column, in order, and how many each row has.

    Values are int64, float32, float64, or text. A text of a `joined` column may hold several values, with a
    separator between them; a text of a list holds one. `weights` are the items of a map column, whose keys
    are the values.
    """

    values: NumberArray | Text
    lengths: Int32Array
    joined: bool = False
    weights: Float32Array | None = None


def read_cells(batch: pa.RecordBatch | pa.Table, column: str, null: float | None = None) -> Cells:
    """The cells of one column of a batch or table; a null of a column of floating numbers counts as `null`."""
    array = batch.column(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if null is not None and array.type.id in _FLOATS and array.null_count:
        return Cells(_filled(array, null), one_per_row(len(array)))
    return cells_of(array, column)


def _filled(array: ArrowArray, null: float) -> NumberArray:
    """The numbers of an array of floating numbers, with one number in place of nulls; Arrow takes twice as long."""
    values = _viewed_as(_FLOATS[array.type.id])(array)
    bits = array.buffers()[0]
    first_byte, first_bit = divmod(array.offset, 8)
    num_bytes = -(-(first_bit + len(array)) // 8)
    valid = np.unpackbits(np.frombuffer(bits, np.uint8, num_bytes, first_byte), bitorder="little")
    return np.where(valid[first_bit : first_bit + len(array)].view(np.bool_), values, values.dtype.type(null))


def cells_of(array: ArrowArray, column: str) -> Cells:
    kind = array.type
    convert = _CONVERSIONS.get(kind.id)
    if convert is not None:
        return _number_cells(array, convert(array))
    if kind.id in _TEXT_KINDS:
        return Cells(_text(array), one_per_row(len(array)), joined=True)
    if is_list(kind):
        return _list_cells(array, column)
    if pt.is_map(kind):
        return _map_cells(array, column)
    if pt.is_dictionary(kind):
        return cells_of(array.dictionary.take(array.indices), column)
    if pt.is_null(kind):
        return Cells(np.empty(0, np.int64), np.zeros(len(array), np.int32))
    raise BadValue(column, None, None, f"is of type {kind}, which cannot be a feature. Usable: {_USABLE}")


def _number_cells(array: ArrowArray, values: NumberArray | Text) -> Cells:
    """What stands in the null slots of the values is arbitrary; text is missing there already."""
    if array.null_count == 0 or isinstance(values, Text):
        return Cells(values, one_per_row(len(array)))
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return Cells(values[valid], valid.astype(np.int32))


def _list_cells(array: ArrowArray, column: str) -> Cells:
    elements = array.flatten()
    lengths = _list_lengths(array)
    if pt.is_dictionary(elements.type):
        elements = elements.dictionary.take(elements.indices)
    if pt.is_nested(elements.type):
        raise BadValue(
            column, None, None, f"is a {array.type}; elements are single values, except in sequences"
        )
    inner = cells_of(elements, column)
    if inner.lengths is not one_per_row(len(elements)):
        lengths = sum_by_row(inner.lengths, lengths)
    return Cells(inner.values, lengths)


def _map_cells(array: ArrowArray, column: str) -> Cells:
    key = pa.field("key", array.type.key_type, nullable=False)
    entries: ArrowArray = pc.cast(array, pa.list_(pa.struct([key, pa.field("value", array.type.item_type)])))
    lengths = _list_lengths(entries)
    keys, items = entries.flatten().flatten()
    if not (pt.is_integer(items.type) or pt.is_floating(items.type) or pt.is_decimal(items.type)):
        raise BadValue(column, None, None, f"is a {array.type}; the items of a map are weights, so numbers")
    weights = np.asarray(pc.cast(items, pa.float64()).to_numpy(zero_copy_only=False), np.float32)
    usable = np.isfinite(weights)
    if not usable.all():
        first = int(np.argmin(usable))
        row = row_of_value(lengths, first)
        raise BadValue(column, row, keys[first].as_py(), "has a weight that is null or not finite")
    return Cells(cells_of(keys, column).values, lengths, weights=weights)


def _list_lengths(array: ArrowArray) -> Int32Array:
    lengths: ArrowArray = pc.list_value_length(array)
    if lengths.null_count:
        lengths = lengths.fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int32)


def _text(array: ArrowArray) -> Text:
    """Nulls are empty texts: both are missing values."""
    if pt.is_string_view(array.type) or pt.is_binary_view(array.type):
        array = pc.cast(array, pa.large_binary())
    if array.null_count:
        is_string = pt.is_string(array.type) or pt.is_large_string(array.type)
        array = array.fill_null("" if is_string else b"")
    _, offsets, data = array.buffers()
    width = np.int64 if pt.is_large_string(array.type) or pt.is_large_binary(array.type) else np.int32
    starts = _view(offsets, width, array.offset, len(array) + 1)
    return Text(_view(data, np.uint8, 0, data.size if data else 0), starts.astype(np.int64))


def _view(buffer: pa.Buffer | None, dtype: Any, offset: int, size: int) -> NumberArray:
    """A read-only view of Arrow memory: always read-only, so that compiled kernels see one type."""
    if buffer is None or size == 0 or buffer.size == 0:
        values = np.zeros(size, dtype)
    else:
        values = np.frombuffer(cast(Any, buffer), dtype, size, offset * np.dtype(dtype).itemsize)
    values.flags.writeable = False
    return values


def _viewed_as(dtype: Any) -> Callable[[ArrowArray], NumberArray]:
    def convert(array: ArrowArray) -> NumberArray:
        return _view(array.buffers()[1], dtype, array.offset, len(array))

    return convert


def _widened_from(dtype: Any, wide: Any) -> Callable[[ArrowArray], NumberArray]:
    view = _viewed_as(dtype)
    return lambda array: view(array).astype(wide)


def _booleans(array: ArrowArray) -> NumberArray:
    return _widened_from(np.uint8, np.int64)(pc.cast(array, pa.uint8()))


def _unsigned(array: ArrowArray) -> NumberArray | Text:
    if (pc.max(array).as_py() or 0) > np.iinfo(np.int64).max:
        return _text(pc.cast(array, pa.large_string()))
    return _viewed_as(np.int64)(array)


def _seconds(array: ArrowArray) -> NumberArray:
    """Whole seconds since 1970, rounded down, in UTC."""
    return np.floor_divide(_viewed_as(np.int64)(array), _TICKS_PER_SECOND[array.type.unit])


def _whole_or_float(array: ArrowArray) -> NumberArray:
    """Decimals: integers where they have no digits after the point and fit."""
    if array.type.scale == 0 and array.type.precision <= 18:
        return _viewed_as(np.int64)(pc.cast(array, pa.int64()))
    return _viewed_as(np.float64)(pc.cast(array, pa.float64()))


_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())
_TEXT_KINDS = frozenset(kind.id for kind in (*_STRINGS, *_BINARIES))

_DAY_MILLISECONDS = 86_400_000
_CONVERSIONS: dict[int, Callable[[ArrowArray], NumberArray | Text]] = {
    pa.int64().id: _viewed_as(np.int64),
    pa.int32().id: _widened_from(np.int32, np.int64),
    pa.int16().id: _widened_from(np.int16, np.int64),
    pa.int8().id: _widened_from(np.int8, np.int64),
    pa.uint64().id: _unsigned,
    pa.uint32().id: _widened_from(np.uint32, np.int64),
    pa.uint16().id: _widened_from(np.uint16, np.int64),
    pa.uint8().id: _widened_from(np.uint8, np.int64),
    pa.bool_().id: _booleans,
    pa.float64().id: _viewed_as(np.float64),
    pa.float32().id: _viewed_as(np.float32),
    pa.float16().id: _widened_from(np.float16, np.float32),
    pa.date32().id: _widened_from(np.int32, np.int64),
    pa.date64().id: lambda array: np.floor_divide(_viewed_as(np.int64)(array), _DAY_MILLISECONDS),
    pa.timestamp("s").id: _seconds,
    pa.decimal32(1).id: _whole_or_float,
    pa.decimal64(1).id: _whole_or_float,
    pa.decimal128(1).id: _whole_or_float,
    pa.decimal256(1).id: _whole_or_float,
}
