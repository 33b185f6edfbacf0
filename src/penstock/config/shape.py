"""What a section can hold, in the few terms that syntaxes, edits and writers need.

Pydantic knows everything about a field; those who walk over data only ask whether it holds a section, a list, a
map or a value, and of which kind. The shape of a class is derived once.
"""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from penstock.config.section import Marker, Section
from penstock.config.sizes import SizeInBytes

_MEANT = 2
"""Sections that somebody could mean who forgot to name one."""
_WORDS: dict[type, str] = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


@dataclass(frozen=True, slots=True)
class ScalarShape:
    type: type
    words = property(lambda self: _WORDS[self.type])


@dataclass(frozen=True, slots=True)
class EnumShape:
    names: tuple[str, ...]
    title: str
    words = "one of the known names"


@dataclass(frozen=True, slots=True)
class SizeShape:
    words = "a size such as 64MiB"


@dataclass(frozen=True, slots=True)
class UnionShape:
    members: tuple["Shape", ...]
    words = property(lambda self: " or ".join(member.words for member in self.members))


@dataclass(frozen=True, slots=True)
class AnyShape:
    words = "any value"


@dataclass(frozen=True, slots=True)
class ListShape:
    item: "Shape"
    words = "a list"


@dataclass(frozen=True, slots=True)
class MapShape:
    value: "Shape"
    words = "a mapping"


@dataclass(frozen=True, slots=True)
class SectionShape:
    section: type[Section]
    words = "a section"


Shape = ScalarShape | EnumShape | SizeShape | UnionShape | AnyShape | ListShape | MapShape | SectionShape


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One field of a section: its Python name, its key in the file, what it holds, and its default, if it has one."""

    name: str
    key: str
    shape: Shape
    markers: tuple[Marker, ...]
    info: FieldInfo
    default: Any


@cache
def fields_of(section: type[Section]) -> Mapping[str, FieldShape]:
    fields = {}
    for name, info in section.model_fields.items():
        key = info.alias or name
        annotation = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        markers = tuple(note for note in info.metadata if isinstance(note, Marker))
        is_made = info.default_factory is not None  # a section, whose default nobody asks for
        default = None if info.is_required() or is_made else info.get_default()
        fields[key] = FieldShape(name, key, _shape(annotation), markers, info, default)
    return fields


def child_shape(shape: Shape | None, part: str | int) -> Shape | None:
    """The shape one step further along a path, or None when there is none or it is free."""
    if isinstance(shape, SectionShape):
        field = fields_of(shape.section).get(str(part))
        return field.shape if field else None
    if isinstance(shape, ListShape):
        return shape.item
    return shape.value if isinstance(shape, MapShape) else None


def sections_below(section: type[Section], key: str) -> list[str]:
    """The sections inside of this one that have a key, as data_config of a run has batch_size; of many, none."""
    below = [
        name
        for name, field in fields_of(section).items()
        if isinstance(field.shape, SectionShape) and key in fields_of(field.shape.section)
    ]
    return below if len(below) <= _MEANT else []


def is_free_element(shape: Shape) -> bool:
    """Whether an element of a list or map has no type in protobuf: it is written as google.protobuf.Value."""
    return isinstance(shape, AnyShape | ListShape | MapShape)


def _shape(annotation: Any) -> Shape:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        is_size = any(isinstance(note, SizeInBytes) for note in arguments[1:])
        return SizeShape() if is_size else _shape(arguments[0])
    if origin is Union or origin is types.UnionType:
        members = tuple(_shape(argument) for argument in arguments if argument is not type(None))
        return members[0] if len(members) == 1 else UnionShape(members)
    if origin is Literal:
        return ScalarShape(str)
    if origin is not None and issubclass(origin, Mapping):
        return MapShape(_shape(arguments[1]))
    if origin is not None and issubclass(origin, Sequence | frozenset | set):
        return ListShape(_shape(arguments[0]))
    if annotation is Any or annotation is object or annotation is PydanticUndefined:
        return AnyShape()
    if issubclass(annotation, Section):
        return SectionShape(annotation)
    if issubclass(annotation, Enum):
        return EnumShape(tuple(str(member.value) for member in annotation), annotation.__qualname__)
    if annotation in _WORDS:
        return ScalarShape(annotation)
    raise TypeError(f"a section cannot hold {annotation}")
