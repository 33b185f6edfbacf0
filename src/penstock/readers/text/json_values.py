"""Lines of JSON read one by one, as Python does it: for the few that Arrow itself cannot read."""

import json
from typing import Any

import pyarrow as pa

from penstock.readers.text.parsing import BadRecord

_ADVICE = "correct it, or declare another type in data_config.input_fields"


def read_line(line: bytes, columns: pa.Schema) -> tuple[dict[str, Any], BadRecord | None]:
    """The values of a line that can be read, and what is wrong with the first that cannot."""
    try:
        found = json.loads(line)
    except UnicodeDecodeError:
        return {}, BadRecord("is not UTF-8 text", 0)
    except json.JSONDecodeError as error:
        return {}, BadRecord(f"is not JSON: {error.msg}: column {error.colno} of the line", 0)
    if not isinstance(found, dict | None):
        return {}, BadRecord("is not a JSON object; every line must be one", 0)
    values: dict[str, Any] = {}
    first_bad: BadRecord | None = None
    for field in columns:
        value = (found or {}).get(field.name)
        try:
            values[field.name] = convert(value, field.type)
        except ValueError as problem:
            first_bad = first_bad or BadRecord(f"{problem}; {_ADVICE}", 0, field.name, value)
    return values, first_bad


def convert(value: object, value_type: Any) -> Any:
    """The value as `pa.array` takes it for the type; ValueError where it does not fit."""
    types = pa.types
    match value:
        case None:
            return None
        case _ if types.is_string(value_type):
            return _text(value)
        case list() if types.is_map(value_type):
            return [_pair(pair, value_type) for pair in value]
        case list() if types.is_list(value_type):
            return [convert(item, value_type.value_type) for item in value]
        case dict() if types.is_struct(value_type):
            return {field.name: convert(value.get(field.name), field.type) for field in value_type}
        case bool() if types.is_boolean(value_type):
            return value
        case int() if types.is_integer(value_type) and not isinstance(value, bool):
            return _integer(value, value_type)
        case int() | float() if types.is_floating(value_type) and not isinstance(value, bool):
            return float(value)
    how = ', which is written as [{"key": ..., "value": ...}, ...]' if types.is_map(value_type) else ""
    raise ValueError(f"is not {value_type}{how}")


def _text(value: object) -> str:
    """A text as it is; anything else as it is written."""
    if isinstance(value, str):
        value.encode()
        return value
    if isinstance(value, float):
        return str(pa.scalar(value).cast(pa.string()).as_py())
    return json.dumps(value, ensure_ascii=False)


def _pair(pair: object, map_type: Any) -> tuple[Any, Any]:
    if not isinstance(pair, dict) or pair.get("key") is None:
        raise ValueError('has an entry that is not {"key": ..., "value": ...}')
    return convert(pair["key"], map_type.key_type), convert(pair.get("value"), map_type.item_type)


def _integer(value: int, value_type: Any) -> int:
    if pa.types.is_signed_integer(value_type):
        end = 1 << (value_type.bit_width - 1)
        fits = -end <= value < end
    else:
        fits = 0 <= value < 1 << value_type.bit_width
    if not fits:
        raise ValueError(f"is too large for {value_type}")
    return value
