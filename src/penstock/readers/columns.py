"""Which columns are read, and as which types.

Readers pass Arrow types on as they are; the features give them meaning. Two exceptions, where Arrow could not
join or reorder rows otherwise: string_view becomes string, and dictionaries count in int32, so that the
dictionaries of many files fit into one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.readers.origin import ROW_COLUMN

_USABLE = "integers, floats, bools, strings, decimals, timestamps, dates, lists of these, and maps"
_ADVICE = {
    "binary": "write it as string",
    "struct": "write its fields as columns of their own",
    "time": "write it as an integer",
    "duration": "write it as an integer",
    "null": "it has no value at all; give the column a type, or leave it out",
}


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, however Arrow lays them out."""
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def project(schema: pa.Schema, columns: Sequence[str] | None, file: str) -> pa.Schema:
    """The wanted columns of a file, in the wanted order, with the types they are given out as."""
    if columns is None:
        if ROW_COLUMN in schema.names:
            raise DataError.at("this name is reserved for the origin of rows", file=file, column=ROW_COLUMN)
        return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])
    return pa.schema([_wanted_field(schema, name, file) for name in columns])


def _wanted_field(schema: pa.Schema, name: str, file: str) -> "pa.Field[Any]":
    positions = schema.get_all_field_indices(name)
    if not positions:
        raise DataError(f"{file}: there is no column '{name}'; {hint(name, schema.names)}")
    if len(positions) > 1:
        raise DataError.at(f"stands {len(positions)} times in this file", file=file, column=name)
    value_type = schema.field(positions[0]).type
    if not is_usable(value_type):
        raise DataError.at(
            f"has type {value_type}, which cannot be used; {_advice(value_type)}", file=file, column=name
        )
    return pa.field(name, plain_type(value_type))


def join_schemas(first: pa.Schema | None, first_file: str, other: pa.Schema, other_file: str) -> pa.Schema:
    """The columns of both: all files of a data set must agree on the types that are read.

    Except that string and large_string are one type in two widths: the wider one holds both.
    """
    if first is None:
        return other
    fields = []
    for field in first:
        other_type = other.field(field.name).type
        joined = field.type if other_type == field.type else _wider_text(field.type, other_type)
        if joined is None:
            raise DataError(
                f"column '{field.name}' is {field.type} in {first_file} but {other_type} in {other_file}; "
                "write both with one type"
            )
        fields.append(pa.field(field.name, joined))
    return pa.schema(fields)


def _wider_text(first: Any, second: Any) -> Any:
    """The type that holds both where they differ only in the width of texts; else None."""
    if _narrow_text(first) != _narrow_text(second):
        return None
    return _with_text(first, pa.large_string())


def _narrow_text(value_type: Any) -> Any:
    return _with_text(value_type, pa.string())


def _with_text(value_type: Any, text: pa.DataType) -> Any:
    """The type with all its texts as `text`."""
    types = pa.types
    if types.is_string(value_type) or types.is_large_string(value_type):
        return text
    if types.is_dictionary(value_type):
        return pa.dictionary(
            value_type.index_type, _with_text(value_type.value_type, text), value_type.ordered
        )
    if types.is_map(value_type):
        return pa.map_(_with_text(value_type.key_type, text), _with_text(value_type.item_type, text))
    if types.is_list(value_type):
        return pa.list_(_with_text(value_type.value_type, text))
    if types.is_large_list(value_type):
        return pa.large_list(_with_text(value_type.value_type, text))
    if types.is_fixed_size_list(value_type):
        return pa.list_(_with_text(value_type.value_type, text), value_type.list_size)
    return value_type


def plain_type(value_type: Any) -> Any:
    """The type that values are given out as.

    >>> plain_type(pa.list_(pa.string_view()))
    ListType(list<item: string>)
    """
    types = pa.types
    if types.is_string_view(value_type):
        return pa.string()
    if types.is_dictionary(value_type):
        return pa.dictionary(pa.int32(), plain_type(value_type.value_type), value_type.ordered)
    if types.is_map(value_type):
        return pa.map_(plain_type(value_type.key_type), plain_type(value_type.item_type))
    if types.is_list(value_type):
        return pa.list_(_plain_item(value_type))
    if types.is_large_list(value_type):
        return pa.large_list(_plain_item(value_type))
    if types.is_fixed_size_list(value_type):
        return pa.list_(_plain_item(value_type), value_type.list_size)
    return value_type


def _plain_item(list_type: Any) -> "pa.Field[Any]":
    return pa.field("item", plain_type(list_type.value_type))


def is_usable(value_type: Any) -> bool:
    """Whether features can be made from values of this type."""
    types = pa.types
    if types.is_dictionary(value_type):
        return is_usable(value_type.value_type)
    if types.is_list(value_type) or types.is_large_list(value_type) or types.is_fixed_size_list(value_type):
        return is_usable(value_type.value_type)
    if types.is_map(value_type):
        return is_usable(value_type.key_type) and is_usable(value_type.item_type)
    is_text = (
        types.is_string(value_type) or types.is_large_string(value_type) or types.is_string_view(value_type)
    )
    is_number = types.is_integer(value_type) or types.is_floating(value_type) or types.is_decimal(value_type)
    is_moment = types.is_timestamp(value_type) or types.is_date(value_type)
    return is_text or is_number or is_moment or types.is_boolean(value_type)


def _advice(value_type: pa.DataType) -> str:
    name = str(value_type)
    found = [advice for part, advice in _ADVICE.items() if part in name]
    return found[0] if found else f"usable are {_USABLE}"


def with_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of `schema`; columns that have them already are not copied."""
    arrays = [as_type(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def as_type(array: Any, given_type: Any) -> Any:
    """The rows of an array as another type; only those of a slice are converted.

    Arrow itself casts the items of a sliced list from the very first on, and cannot copy rows of string views.

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
