"""Cells -> Arrow columns: room is made for what was counted, and filled by compiled loops."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.readers.tfrecord.features import ANY_LENGTH, Feature
from penstock.readers.tfrecord.problems import DECLARE, UnusableRecord, of_failure
from penstock.readers.tfrecord.take import (
    count,
    take_bytes,
    take_float_scalars,
    take_int64_scalars,
    take_numbers,
)
from penstock.readers.tfrecord.wire import BYTES_KIND, FLOAT_KIND, INT64_KIND

BoolArray = NDArray[np.bool_]
_SHOWN = 60
_NATIVE = {BYTES_KIND: pa.binary(), FLOAT_KIND: pa.float32(), INT64_KIND: pa.int64()}
_TAKE_SCALARS = {
    FLOAT_KIND: (take_float_scalars, np.uint32),
    INT64_KIND: (take_int64_scalars, np.int64),
}


class Located(NamedTuple):
    """Records, and where in them the lists of the wanted features stand."""

    data: NDArray[np.uint8]
    cells: NDArray[np.int32]
    """For each row and column the begin and the end of its list."""


def take_columns(located: Located, features: Sequence[Feature]) -> list[Any]:
    """The columns, in the order of the features; raises UnusableRecord for the first value that does not fit."""
    columns: dict[int, Any] = {}
    for kind in _TAKE_SCALARS:
        group = [i for i, feature in enumerate(features) if feature.kind == kind and feature.length is None]
        if group:
            columns.update(zip(group, _scalars(located, group, kind), strict=True))
    for i, feature in enumerate(features):
        native = columns[i] if i in columns else _values(located, i, feature)
        columns[i] = _finished(native, i, feature)
    return [columns[i] for i in range(len(features))]


def _scalars(located: Located, group: Sequence[int], kind: int) -> list[Any]:
    """All columns of one number per row, in one pass over the rows."""
    take, bits = _TAKE_SCALARS[kind]
    num_rows = len(located.cells)
    values = np.empty((len(group), num_rows), bits)
    present = np.empty((len(group), num_rows), np.bool_)
    failure = np.zeros(4, np.int64)
    if take(*located, np.array(group), values, present, failure) < 0:
        raise of_failure(failure.tolist(), [])
    num_null = (num_rows - np.count_nonzero(present, axis=1)).tolist()
    return [
        pa.Array.from_buffers(
            _NATIVE[kind], num_rows, [_bitmap(present[i], num_null[i]), _buffer(values[i])], num_null[i]
        )
        for i in range(len(group))
    ]


def _values(located: Located, column: int, feature: Feature) -> Any:
    """A column of texts or of lists."""
    num_rows = len(located.cells)
    lengths, sizes = np.empty(num_rows, np.int32), np.empty(num_rows, np.int64)
    failure = np.zeros(4, np.int64)
    if count(*located, column, feature.kind, lengths, sizes, failure) < 0:
        raise of_failure(failure.tolist(), [])
    present = lengths > (-1 if feature.length == ANY_LENGTH else 0)
    np.maximum(lengths, 0, out=lengths)
    _check_lengths(lengths, present, column, feature)
    num_values = int(lengths.sum())
    if feature.kind == BYTES_KIND:
        items = _bytes(located, column, num_values, int(sizes.sum()))
    else:
        items = _numbers(located, column, feature.kind, num_values)
    return _with_shape(items, lengths, present, feature)


def _with_shape(items: Any, lengths: NDArray[np.int32], present: BoolArray, feature: Feature) -> Any:
    """The values of all rows, one after another, as a column; missing lists of any length are empty."""
    is_whole = bool(present.all())
    if feature.length == ANY_LENGTH:
        mask = None if is_whole or feature.default is None else pa.array(~present)
        return pa.ListArray.from_arrays(_offsets(lengths), items, mask=mask)
    if not is_whole:
        has_value = np.repeat(present, feature.length or 1)
        items = items.take(pa.array(np.cumsum(has_value) - 1, mask=~has_value))
    if feature.length is None:
        return items
    return pa.FixedSizeListArray.from_arrays(
        items, feature.length, mask=None if is_whole else pa.array(~present)
    )


def _check_lengths(lengths: NDArray[np.int32], present: BoolArray, column: int, feature: Feature) -> None:
    if feature.length == ANY_LENGTH:
        return
    length = feature.length or 1
    wrong = np.flatnonzero(present & (lengths != length))
    if wrong.size:
        row = int(wrong[0])
        expected = "one" if feature.length is None else length
        problem = f"holds {lengths[row]} values, not {expected} as declared or as in other records; {DECLARE}"
        raise UnusableRecord(row, problem, column)


def _numbers(located: Located, column: int, kind: int, num_values: int) -> Any:
    values = np.empty(num_values, np.float32 if kind == FLOAT_KIND else np.int64)
    failure = np.zeros(4, np.int64)
    if take_numbers(*located, column, kind, values, failure) < 0:
        raise of_failure(failure.tolist(), [])
    return pa.array(values)


def _bytes(located: Located, column: int, num_values: int, num_bytes: int) -> Any:
    offsets, values = np.zeros(num_values + 1, np.int32), np.empty(num_bytes, np.uint8)
    take_bytes(*located, column, offsets[1:], values)
    return pa.Array.from_buffers(pa.binary(), num_values, [None, _buffer(offsets), _buffer(values)])


def _offsets(lengths: NDArray[np.int32]) -> Any:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)


def _buffer(values: Any) -> pa.Buffer:
    """The memory of an array; the stubs do not know that an array is a buffer."""
    return pa.py_buffer(values)


def _bitmap(present: BoolArray, num_null: int) -> pa.Buffer | None:
    return _buffer(np.packbits(present, bitorder="little")) if num_null else None


def _finished(native: Any, column: int, feature: Feature) -> Any:
    """The column in the type that it is given out as, with its default."""
    try:
        values = native if native.type == feature.arrow_type else native.cast(feature.arrow_type)
    except pa.ArrowInvalid as error:
        row = _first_row_that_fails(native, feature.arrow_type)
        raise UnusableRecord(row, _misfit(native[row], feature), column) from error
    if feature.default is not None and values.null_count:
        return pc.fill_null(values, pa.scalar(feature.default_value, feature.arrow_type))
    return values


def _first_row_that_fails(native: Any, arrow_type: Any) -> int:
    first, end = 0, len(native)
    while end - first > 1:
        middle = (first + end) // 2
        try:
            native.take(pa.array(range(first, middle))).cast(arrow_type)
            first = middle
        except pa.ArrowInvalid:
            end = middle
    return first


def _misfit(value: Any, feature: Feature) -> str:
    if feature.kind == BYTES_KIND:
        return f"holds bytes that are not UTF-8 ({_short(value.as_py())}); declare it as bytes, or write it as UTF-8"
    return f"holds {_short(value.as_py())}, which {feature.type} cannot hold; declare a wider type"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
