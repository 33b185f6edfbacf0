"""The types of JSON lines: declared in the run file, or found from samples across all of each file.

Arrow's JSON reader knows no maps and reads no number as text. So a column may be read as another type than it is
given out as.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from penstock.readers.sections import Field, FieldType

_SCALARS: dict[str, pa.DataType] = {
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
}
_INT64_END = 1 << 63
_FIXED = (pa.bool_(), pa.int64(), pa.uint64(), pa.float64())


def declared_types(fields: Sequence[Field]) -> dict[str, Any]:
    """The types that the run file declares, as they are given out."""
    return {field.input_name: _declared(field.input_type) for field in fields if field.input_type is not None}


def _declared(field_type: FieldType) -> Any:
    kind, _, rest = field_type.value.partition("_")
    if kind == "ARRAY":
        return pa.list_(_declared(FieldType(rest)))
    if kind == "MAP":
        key, _, item = rest.partition("_")
        return pa.map_(_SCALARS[key], _SCALARS[item])
    return _SCALARS[field_type.value]


def value_type(value: object) -> Any:
    """The narrowest type that holds a value.

    >>> value_type([1, 2.5, None])
    ListType(list<item: double>)
    """
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if -_INT64_END <= value < _INT64_END else pa.uint64()
        case float():
            return pa.float64()
        case list():
            return pa.list_(reduce(join_types, map(value_type, value), pa.null()))
        case dict():
            return pa.struct([(key, value_type(item)) for key, item in value.items()])
        case _:
            return pa.string()


def join_types(first: Any, second: Any) -> Any:
    """The narrowest type that holds the values of both; text where nothing else does."""
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


def given_type(found: Any, is_text: bool) -> Any:
    """The type as which values of a found type are given out.

    What has no value at all is text, as are integers beyond int64, which no number would hold exactly.
    """
    if pa.types.is_list(found):
        return pa.list_(given_type(found.value_type, is_text))
    if pa.types.is_null(found) or found == pa.uint64() or (is_text and found in _FIXED):
        return pa.string()
    return found


def read_type(given: Any, found: Any) -> Any:
    """The type as which Arrow reads what is given out as another: maps as lists of pairs, numbers as numbers."""
    if pa.types.is_map(given):
        return pa.list_(pa.struct([("key", given.key_type), ("value", given.item_type)]))
    if pa.types.is_list(given):
        item = found.value_type if pa.types.is_list(found) else pa.null()
        return pa.list_(read_type(given.value_type, item))
    if pa.types.is_string(given) and found in _FIXED:
        return found
    return given


def json_schemas(
    names: Sequence[str], found: Mapping[str, Any], declared: Mapping[str, Any], text_columns: Sequence[str]
) -> tuple[pa.Schema, pa.Schema]:
    """The columns as they are given out, and as Arrow reads them."""
    given = {
        name: declared[name]
        if name in declared
        else given_type(found.get(name, pa.null()), name in text_columns)
        for name in names
    }
    read = {name: read_type(value_type, found.get(name, pa.null())) for name, value_type in given.items()}
    return pa.schema(list(given.items())), pa.schema(list(read.items()))
