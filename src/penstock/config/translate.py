"""Pydantic's errors -> findings in the words of the run file."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from penstock.config.findings import Finding
from penstock.config.nearest import hint
from penstock.config.paths import KeyPath
from penstock.config.section import Section
from penstock.config.shape import (
    EnumShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    UnionShape,
    fields_of,
)

_SAID_ELSEWHERE = frozenset({"extra_forbidden", "one_of"})
_LIMITS = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be finite",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "expected {expected}",
}
_LONGEST_SHOWN = 60


def value_problems(error: ValidationError, root: type[Section]) -> list[Finding]:
    """What pydantic found. The members of a union complain together, in the same words."""
    findings = []
    for detail in error.errors(include_url=False):
        if detail["type"] not in _SAID_ELSEWHERE:
            path, shape = _place(detail["loc"], root)
            findings.append(Finding(path, _message(detail, shape)))
    return list(dict.fromkeys(findings))


def shown(value: Any) -> str:
    """A value for a message, in the form of the run file and not too long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a section"
    text = "a list" if isinstance(value, list) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _place(location: Iterable[str | int], root: type[Section]) -> tuple[KeyPath, Shape]:
    """The path of an error as users write it: keys for Python names, without pydantic's notes on unions."""
    path: list[str | int] = []
    shape: Shape = SectionShape(root)
    for part in location:
        if isinstance(shape, SectionShape):
            by_name = {field.name: field for field in fields_of(shape.section).values()}
            field = by_name.get(str(part)) or fields_of(shape.section).get(str(part))
            if field is None:
                break
            path.append(field.key)
            shape = field.shape
        elif isinstance(shape, ListShape) and isinstance(part, int):
            path.append(part)
            shape = shape.item
        elif isinstance(shape, MapShape):
            path.append(part)
            shape = shape.value
        else:
            break
    return tuple(path), shape


def _message(detail: ErrorDetails, shape: Shape) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "missing":
        return "is required"
    if kind == "finding":
        return detail["msg"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "finding":
        return detail["msg"]
    if kind == "string_too_short" and context["min_length"] == 1:
        return "is empty; give it a value"
    if kind in _LIMITS:
        return f"is {shown(value)}; {_LIMITS[kind].format(**context)}"
    if isinstance(shape, EnumShape) and isinstance(value, str):
        return f"is '{value}'; {hint(value, shape.names)}"
    if isinstance(shape, EnumShape):
        return f"is {shown(value)}; expected one of {', '.join(shape.names)}"
    if kind.endswith(("_type", "_parsing", "_from_float")) or isinstance(shape, ScalarShape | UnionShape):
        return f"is {shown(value)}; expected {shape.words}"
    return f"is {shown(value)}; {detail['msg'][:1].lower()}{detail['msg'][1:]}"
