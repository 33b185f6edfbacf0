"""Sections -> the plain data that a run file holds."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from penstock.config.section import Section
from penstock.config.shape import FieldShape, ListShape, MapShape, Shape, SizeShape, UnionShape, fields_of
from penstock.config.sizes import exact_size


def section_data(section: Section, *, full: bool = False) -> dict[str, Any]:
    """The fields that were written, by the keys of the file; `full` adds every default that is in effect.

    Fields that only old files use appear only when they were written.
    """
    return {
        key: _value(getattr(section, field.name), field.shape, full)
        for key, field in fields_of(type(section)).items()
        if _is_shown(section, field, full)
    }


def _is_shown(section: Section, field: FieldShape, full: bool) -> bool:
    if getattr(section, field.name) is None:
        return False
    return field.name in section.model_fields_set or (full and not field.markers)


def _value(value: Any, shape: Shape, full: bool) -> Any:
    if isinstance(value, Section):
        return section_data(value, full=full)
    if isinstance(value, Enum):
        return value.value
    if isinstance(shape, SizeShape):
        return exact_size(value)
    if isinstance(shape, UnionShape) and SizeShape() in shape.members and not isinstance(value, float | str):
        return exact_size(value)
    if isinstance(value, Mapping):
        item = shape.value if isinstance(shape, MapShape) else shape
        return {key: _value(entry, item, full) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        item = shape.item if isinstance(shape, ListShape) else shape
        return [_value(entry, item, full) for entry in value]
    return value
