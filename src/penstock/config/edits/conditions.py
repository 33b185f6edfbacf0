"""Which entries of a list a condition chooses."""

import operator
from collections.abc import Callable
from typing import Any

from penstock.config.edits.steps import Condition, EditError, Index, Key, Step, show_steps
from penstock.config.edits.values import value_for
from penstock.config.nearest import hint, nearest_name
from penstock.config.shape import (
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    SizeShape,
    UnionShape,
    fields_of,
)
from penstock.config.sizes import parse_size

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_ABSENT = object()


def matching(entries: list[Any], condition: Condition, item: Shape, place: str) -> list[int]:
    """The indices of the entries for which a condition holds; entries without the field never match."""
    shape = _shape_at(item, condition.steps)
    wanted = _comparable(value_for(condition.value, shape), shape)
    if condition.operator not in ("=", "!=") and not _is_number(wanted):
        raise EditError(f"compares '{condition.text}', but {condition.operator} needs a number")
    values = [_value_at(entry, item, condition.steps) for entry in entries]
    compare = _COMPARE[condition.operator]
    found = [
        index
        for index, value in enumerate(values)
        if value is not _ABSENT and _holds(compare, _comparable(value, shape), wanted, condition.operator)
    ]
    if not found:
        raise EditError(
            f"'[{condition.text}]' matches none of the {len(entries)} entries of '{place}'"
            + _near(values, condition)
        )
    return found


def _holds(compare: Callable[[Any, Any], bool], value: Any, wanted: Any, sign: str) -> bool:
    return compare(value, wanted) if sign in ("=", "!=") or _is_number(value) else False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _near(values: list[Any], condition: Condition) -> str:
    texts = sorted({str(value) for value in values if value is not _ABSENT and value is not None})
    near = nearest_name(condition.value, texts)
    path = show_steps(condition.steps)
    return f"; did you mean '[{path}{condition.operator}{near}]'?" if near else ""


def _shape_at(shape: Shape, steps: tuple[Step, ...]) -> Shape:
    for number, step in enumerate(steps):
        if isinstance(shape, SectionShape) and isinstance(step, Key):
            fields = fields_of(shape.section)
            if step.name not in fields:
                name = show_steps(steps[: number + 1])
                raise EditError(f"has a condition on '{name}': unknown key; {hint(step.name, fields)}")
            shape = fields[step.name].shape
        elif isinstance(shape, MapShape) and isinstance(step, Key):
            shape = shape.value
        elif isinstance(shape, ListShape) and isinstance(step, Index):
            shape = shape.item
        else:
            raise EditError(f"has a condition on '{show_steps(steps)}', which is not one value")
    if not isinstance(shape, ScalarShape | SizeShape | UnionShape) and not hasattr(shape, "names"):
        raise EditError(f"has a condition on '{show_steps(steps)}', which is {shape.words}")
    return shape


def _value_at(value: Any, shape: Shape, steps: tuple[Step, ...]) -> Any:
    """The value in effect: the written one, or the default of a field whose section is there."""
    for step in steps:
        if isinstance(step, Index) and isinstance(value, list) and -len(value) <= step.index < len(value):
            value, shape = value[step.index], shape.item if isinstance(shape, ListShape) else shape
        elif isinstance(step, Key) and isinstance(value, dict) and isinstance(shape, SectionShape):
            field = fields_of(shape.section)[step.name]
            value = value.get(step.name, _ABSENT if isinstance(field.shape, SectionShape) else field.default)
            shape = field.shape
        elif isinstance(step, Key) and isinstance(value, dict) and step.name in value:
            value = value[step.name]
        else:
            return _ABSENT
    return _ABSENT if value is None else value


def _comparable(value: Any, shape: Shape) -> Any:
    if isinstance(shape, SizeShape) and isinstance(value, str):
        try:
            return parse_size(value)
        except ValueError:
            return value
    return value
