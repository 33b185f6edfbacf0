"""Arrow columns as NumPy arrays: views wherever the bytes are the same.

| Arrow | NumPy |
|---|---|
| integers, floats, timestamps, dates | the same type; a view of Arrow's memory, which cannot be written to |
| booleans | bool, copied: Arrow packs them into bits |
| decimals | float64 |
| strings, binaries, dictionaries of these | object array of str or bytes |
| lists of a fixed size | one more dimension: (rows, size), and so on inward |
| lists | `Ragged` |

No value: NaN among floats and decimals, NaT among times, None among texts, an empty list among lists. Integers and
booleans have no such value: there it is an error, unless `.fill_nulls` says what to take.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.pipeline.dataset.origin import Origin
from penstock.pipeline.dataset.ragged import Column, Columns, Int64Array, Ragged

ArrowArray = Any
"""pa.Array: its type stubs know fewer methods than the classes have."""


_OFFSETS = {False: np.int32, True: np.int64}
"""The integers that count the values of lists, by whether the lists are large."""


class HasNulls(Exception):
    """A column without a value for 'no value' has a row that needs it."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class NotAnArray(Exception):
    """A type that is no array of numbers, texts or lists."""


def columns_of(batch: pa.RecordBatch, origin: Origin, shapes: Mapping[str, tuple[int, ...]]) -> Columns:
    """The columns of a batch as arrays; what cannot be one is a DataError with file and row.

    `shapes` are those of a row where it has more than one axis at its source.
    """
    columns = {
        name: _column(name, array, origin)
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    }
    for name in shapes.keys() & columns.keys():
        if isinstance(column := columns[name], np.ndarray):
            columns[name] = column.reshape(len(column), *shapes[name])
    return columns


def _column(name: str, array: ArrowArray, origin: Origin) -> Column:
    try:
        return _converted(array)
    except HasNulls as error:
        file, row = origin.of_row(error.row)
        raise DataError.at(
            f"has no value, and {leaf_type(array.type)} has none that says so; "
            f"say what to take: .fill_nulls({name}=...)",
            file=file,
            row=row,
            column=name,
        ) from None
    except NotAnArray:
        raise DataError.at(
            f"is of type {array.type}, which is no array; leave it out with .columns([...]), or read it "
            "with .to_arrow()",
            column=name,
        ) from None


def _converted(array: ArrowArray) -> Column:
    kind = array.type
    if pt.is_dictionary(kind):
        return _converted(array.dictionary_decode())
    if pt.is_fixed_size_list(kind):
        return _fixed_lists(array)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _lists(array)
    if pt.is_map(kind) or pt.is_struct(kind) or pt.is_union(kind) or pt.is_null(kind):
        raise NotAnArray
    if pt.is_decimal(kind):
        array = array.cast(pa.float64())
    elif (pt.is_integer(kind) or pt.is_boolean(kind)) and array.null_count:
        raise HasNulls(first_null(array))
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _lists(array: ArrowArray) -> Ragged:
    """Values without those of rows that are null; a view where none is."""
    offsets = _offsets(array)
    try:
        return Ragged(_converted(array.flatten()), offsets)
    except HasNulls as error:
        raise HasNulls(int(np.searchsorted(offsets, error.row, side="right")) - 1) from None


def _offsets(array: ArrowArray) -> Int64Array:
    """Where lists begin and end in the flattened values; one that is null is empty."""
    lengths = array.value_lengths()
    if lengths.null_count:
        lengths = lengths.fill_null(0)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths.to_numpy(), out=offsets[1:])
    return offsets


def _fixed_lists(array: ArrowArray) -> Column:
    size = array.type.list_size
    values = array.values.slice(array.offset * size, len(array) * size)
    try:
        converted = _converted(values)
    except HasNulls as error:
        raise HasNulls(error.row // size) from None
    if isinstance(converted, Ragged):
        raise NotAnArray
    rows = converted.reshape(len(array), size, *converted.shape[1:])
    return _without_values(array, rows) if array.null_count else rows


def _without_values(array: ArrowArray, rows: NDArray[Any]) -> NDArray[Any]:
    """NaN, NaT or None in the rows that are null."""
    no_value = {"f": np.nan, "M": np.datetime64("NaT"), "O": None}
    if rows.dtype.kind not in no_value:
        raise HasNulls(first_null(array))
    rows = rows.copy()
    rows[array.is_null().to_numpy(zero_copy_only=False)] = no_value[rows.dtype.kind]
    return rows


def first_null(array: ArrowArray) -> int:
    """The first row that is null."""
    return int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))


def fill_nulls(batch: pa.RecordBatch, fills: Mapping[str, Any]) -> pa.RecordBatch:
    """The batch with a value wherever one of these columns has none, inside lists too; a list that is null is empty."""
    for name, value in fills.items():
        index = batch.schema.get_field_index(name)
        batch = batch.set_column(index, batch.schema.field(index), _filled(batch.column(index), value))
    return batch


def _filled(array: ArrowArray, value: Any) -> ArrowArray:
    kind = array.type
    if pt.is_list(kind) or pt.is_large_list(kind):
        if not array.flatten().null_count:
            return array
        return type(array).from_arrays(
            _offsets(array).astype(_OFFSETS[pt.is_large_list(kind)]),
            _filled(array.flatten(), value),
            type=kind,
        )
    if pt.is_fixed_size_list(kind):
        if array.null_count or not array.flatten().null_count:
            return array
        return type(array).from_arrays(_filled(array.flatten(), value), type=kind)
    return array.fill_null(value) if array.null_count else array


def leaf_type(kind: Any) -> Any:
    """The type of the values inside lists, however deep."""
    while pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        kind = kind.value_type
    return kind.value_type if pt.is_dictionary(kind) else kind
