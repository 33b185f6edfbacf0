"""The value of an edit takes the type of the field it is for."""

import re
from typing import Any

from penstock.config.edits.steps import EditError
from penstock.config.shape import (
    AnyShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    SizeShape,
    UnionShape,
)
from penstock.config.syntax.json_syntax import read_json_value
from penstock.config.syntax.yaml_syntax import read_yaml_value

_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)


def value_for(text: str, shape: Shape) -> Any:
    """A text as a value of this shape; one that does not fit stays text, for the check to complain about."""
    if isinstance(shape, ListShape | MapShape | SectionShape):
        return _structure(text, shape)
    if isinstance(shape, AnyShape):
        parsed = read_json_value(text)
        return parsed.data if parsed.readable else text
    if isinstance(shape, UnionShape):
        values = (value_for(text, member) for member in shape.members)
        return next((value for value in values if not isinstance(value, str)), text)
    if isinstance(shape, SizeShape):
        return int(text) if _INTEGER.fullmatch(text.strip()) else text.strip()
    return _scalar(text, shape.type) if isinstance(shape, ScalarShape) else text.strip()


def _scalar(text: str, kind: type) -> Any:
    if kind is str:
        return text
    word = text.strip()
    if kind is bool:
        return {"true": True, "false": False}.get(word.lower(), text)
    if kind is int:
        return int(word) if _INTEGER.fullmatch(word) else text
    try:
        return float(word)
    except ValueError:
        return text


def _structure(text: str, shape: Shape) -> Any:
    """A list or section in JSON, in text format, or in YAML's short form."""
    text = text.strip()
    if not text.startswith(("[", "{")):
        return text
    parsed = read_json_value(text)
    if parsed.readable and not parsed.problems:
        return parsed.data
    if isinstance(shape, SectionShape) and text.startswith("{") and text.endswith("}"):
        # Protobuf is only imported for those who write its syntax.
        from penstock.config.syntax.text_syntax import read_text

        parsed = read_text(text[1:-1], shape.section)
        if parsed.readable and not parsed.problems:
            return parsed.data
    parsed = read_yaml_value(text, shape, typed=True)
    if not parsed.readable or parsed.problems:
        raise EditError(f"is set to '{text}', which can be read neither as JSON nor as {{...}}")
    return parsed.data
