"""Plain data -> protobuf text format."""

from collections.abc import Iterator
from typing import Any

from penstock.config.section import Section
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    SectionShape,
    Shape,
    fields_of,
    is_free_element,
)

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INDENT = "  "


def write_text(data: dict[str, Any], section: type[Section]) -> str:
    """The data of a section as text format."""
    return "".join(f"{line}\n" for line in _section(data, section))


def _section(data: dict[str, Any], section: type[Section]) -> Iterator[str]:
    fields = fields_of(section)
    for key, value in data.items():
        yield from _field(key, value, fields[key].shape)


def _field(key: str, value: Any, shape: Shape) -> Iterator[str]:
    if isinstance(shape, ListShape | MapShape) and not value:
        yield f"{key}: []"
    elif isinstance(shape, ListShape):
        yield from _list(key, value, shape.item)
    elif isinstance(shape, MapShape) and is_free_element(shape.value):
        yield from _block(key, _struct(value))
    elif isinstance(shape, MapShape):
        for name, item in value.items():
            yield from _block(key, [f"key: {_quoted(name)}", *_field("value", item, shape.value)])
    elif isinstance(shape, SectionShape):
        yield from _block(key, _section(value, shape.section))
    elif isinstance(shape, AnyShape):
        yield from _block(key, _free_value(value))
    else:
        yield f"{key}: {_scalar(value, shape)}"


def _list(key: str, values: list[Any], item: Shape) -> Iterator[str]:
    if is_free_element(item) or isinstance(item, SectionShape):
        for value in values:
            yield from _field(key, value, AnyShape() if is_free_element(item) else item)
    else:
        yield f"{key}: [{', '.join(_scalar(value, item) for value in values)}]"


def _block(key: str, lines: Any) -> Iterator[str]:
    inside = list(lines)
    if not inside:
        yield f"{key} {{}}"
        return
    yield f"{key} {{"
    yield from (f"{_INDENT}{line}" for line in inside)
    yield "}"


def _struct(value: dict[str, Any]) -> Iterator[str]:
    for name, item in value.items():
        entry = [f"key: {_quoted(name)}", *_block("value", _free_value(item))]
        yield from _block("fields", entry)


def _free_value(value: Any) -> Iterator[str]:
    if value is None:
        yield "null_value: NULL_VALUE"
    elif isinstance(value, bool):
        yield f"bool_value: {_scalar(value, AnyShape())}"
    elif isinstance(value, int | float):
        yield f"number_value: {value!r}"
    elif isinstance(value, str):
        yield f"string_value: {_quoted(value)}"
    elif isinstance(value, dict):
        yield from _block("struct_value", _struct(value))
    else:
        yield from _block(
            "list_value", (line for item in value for line in _block("values", _free_value(item)))
        )


def _scalar(value: Any, shape: Shape) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        is_name = isinstance(shape, EnumShape) and value in shape.names
        return value if is_name else _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(character) or _visible(character) for character in text) + '"'


def _visible(character: str) -> str:
    return f"\\x{ord(character):02x}" if character < " " or character == "\x7f" else character
