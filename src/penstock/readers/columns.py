"""Which columns are read, and as which types.

Readers pass Arrow types on as they are; the features give them meaning. Two exceptions, where Arrow could not
join or reorder rows otherwise: string_view becomes string, and dictionaries count in int32, so that the
dictionaries of many files fit into one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.config.errors import DataError, hint
from penstock.readers.sections import FieldType, ReadingSection
from penstock.readers.stream import ROW_COLUMN

ArrowArray = Any
"""pa.Array: its type stubs know fewer methods than the classes have."""

_USABLE = "usable are integers, floats, bools, strings, decimals, timestamps, dates, lists of these, and maps"
_ADVICE = {
    "binary": "write it as string",
    "struct": "write its fields as columns of their own",
    "time": "write it as an integer",
    "duration": "write it as an integer",
    "null": "it has no value at all; give the column a type, or leave it out",
}

_SCALARS: dict[str, Any] = {
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
}

_IS_LIST = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)


def is_list(kind: pa.DataType) -> bool:
    return any(check(kind) for check in _IS_LIST)


def project(schema: pa.Schema, columns: Sequence[str] | None, file: str) -> pa.Schema:
    """The requested columns of a file, in the requested order, with the types they are given out as."""
    if columns is None:
        if ROW_COLUMN in schema.names:
            raise DataError.at("this name is reserved for the origin of rows", file=file, column=ROW_COLUMN)
        return pa.schema([pa.field(field.name, plain_type(field.type) or field.type) for field in schema])
    fields = []
    for name in columns:
        positions = schema.get_all_field_indices(name)
        if not positions:
            raise DataError(f"{file}: there is no column '{name}'; {hint(name, schema.names)}")
        if len(positions) > 1:
            raise DataError.at(f"stands {len(positions)} times in this file", file=file, column=name)
        kind = schema.field(positions[0]).type
        plain = plain_type(kind)
        if plain is None:
            advice = next((advice for part, advice in _ADVICE.items() if part in str(kind)), _USABLE)
            raise DataError.at(f"has type {kind}, which cannot be used; {advice}", file=file, column=name)
        fields.append(pa.field(name, plain))
    return pa.schema(fields)


def join_schemas(first: pa.Schema, first_file: str, other: pa.Schema, other_file: str) -> pa.Schema:
    """The columns of both files, whose types must agree; string and large_string do, and give the wider one."""
    fields = []
    for field in first:
        joined, other_type = field.type, other.field(field.name).type
        if other_type != joined:
            joined = plain_type(joined, large_strings=True)
            if joined is None or joined != plain_type(other_type, large_strings=True):
                raise DataError(
                    f"column '{field.name}' is {field.type} in {first_file} but {other_type} in {other_file}; "
                    "write both with one type"
                )
        fields.append(pa.field(field.name, joined))
    return pa.schema(fields)


def plain_type(kind: Any, large_strings: bool = False) -> Any | None:
    """The type that values are given out as, None where they cannot be used; `large_strings` widens those inside.

    >>> plain_type(pa.list_(pa.string_view()))
    ListType(list<item: string>)
    """
    if pt.is_map(kind):
        inner = [plain_type(part, large_strings) for part in (kind.key_type, kind.item_type)]
        return None if any(part is None for part in inner) else pa.map_(*inner)
    if pt.is_dictionary(kind) or pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        item = plain_type(kind.value_type, large_strings)
        if item is None:
            return None
        if pt.is_dictionary(kind):
            return pa.dictionary(pa.int32(), item, kind.ordered)
        if pt.is_fixed_size_list(kind):
            return pa.list_(item, kind.list_size)
        return pa.list_(item) if pt.is_list(kind) else pa.large_list(item)
    if pt.is_string(kind) or pt.is_string_view(kind):
        return pa.large_string() if large_strings else pa.string()
    is_number = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
    is_time = pt.is_timestamp(kind) or pt.is_date(kind)
    return kind if is_number or is_time or pt.is_large_string(kind) or pt.is_boolean(kind) else None


def with_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of `schema`; columns that have them already are not copied."""
    pairs = zip(batch.columns, schema.types, strict=True)
    arrays = [array if array.type == kind else as_type(array, kind) for array, kind in pairs]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def as_type(array: Any, given_type: Any) -> Any:
    """The rows of an array as another type; only those of a slice are converted.

    Arrow itself casts the items of a sliced list from the very first on, and cannot copy rows of string views.

    >>> as_type(pa.array([["a"], ["b"]], pa.list_(pa.string_view())).slice(1), pa.list_(pa.string())).to_pylist()
    [['b']]
    """
    if array.type == given_type:
        return array
    if pt.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = as_type(array.values.slice(array.offset * size, len(array) * size), given_type.value_type)
        mask = array.is_null() if array.null_count else None
        return pa.FixedSizeListArray.from_arrays(items, type=given_type, mask=mask)
    if pt.is_map(array.type) or pt.is_list(array.type) or pt.is_large_list(array.type):
        return with_items(array, given_type, as_type)
    return array.cast(given_type)


def with_items(array: Any, given_type: Any, convert: Callable[[Any, Any], Any]) -> Any:
    """The rows of a list or map array with their items converted; offsets of a damaged file point anywhere."""
    is_map = pt.is_map(array.type)
    offsets = array.offsets.to_numpy()
    first, count = int(offsets[0]), int(offsets[-1]) - int(offsets[0])
    items = [array.keys, array.items] if is_map else [array.values]
    if first < 0 or first + count > len(items[0]) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"offsets of a {array.type} column go backwards")
    item_types = [given_type.key_type, given_type.item_type] if is_map else [given_type.value_type]
    list_class: Any = pa.ListArray if pt.is_list(array.type) else pa.LargeListArray
    return (pa.MapArray if is_map else list_class).from_arrays(
        pa.array(offsets - np.asarray(first, offsets.dtype)),
        *(convert(part.slice(first, count), kind) for part, kind in zip(items, item_types, strict=True)),
        type=given_type,
        mask=array.is_null() if array.null_count else None,
    )


def declared_types(reading: ReadingSection) -> dict[str, Any]:
    def arrow_type(field_type: FieldType) -> Any:
        kind, _, rest = field_type.value.partition("_")
        if kind == "ARRAY":
            return pa.list_(arrow_type(FieldType(rest)))
        if kind == "MAP":
            key, _, item = rest.partition("_")
            return pa.map_(_SCALARS[key], _SCALARS[item])
        return _SCALARS[kind]

    fields = reading.resolved_input_fields()
    return {
        field.input_name: arrow_type(field.input_type) for field in fields if field.input_type is not None
    }


def join_types(first: Any, second: Any) -> Any:
    """The narrowest type that holds the values of both; string where nothing else does."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if {first, second} == {pa.int64(), pa.uint64()}:
        return pa.uint64()
    if pa.float64() in (first, second) and not {first, second}.isdisjoint({pa.int64(), pa.uint64()}):
        return pa.float64()
    if pa.types.is_list(first) and pa.types.is_list(second):
        return pa.list_(join_types(first.value_type, second.value_type))
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        fields = {field.name: field.type for field in first}
        for field in second:
            fields[field.name] = join_types(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    return pa.string()
