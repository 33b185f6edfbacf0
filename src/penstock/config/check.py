"""Plain data -> every problem it has, in the words of the run file.

Two judges look at the data. The first walks over the keys: unknown keys, one-of groups, refused and empty
fields. The second is pydantic, which judges the values. The first speaks even where the second stops early.
"""

from collections.abc import Iterator
from typing import Any

from penstock.config.findings import Finding
from penstock.config.markers import Refused
from penstock.config.nearest import hint, nearest_name
from penstock.config.paths import KeyPath
from penstock.config.section import Section, group_problems
from penstock.config.shape import (
    AnyShape,
    FieldShape,
    ListShape,
    MapShape,
    SectionShape,
    Shape,
    fields_of,
    is_free_element,
)

_INT64_BITS = 63
# Free values are numbers of google.protobuf.Value, which is a double: it holds smaller integers exactly.
_DOUBLE_BITS = 53


def key_problems(data: Any, root: type[Section]) -> list[Finding]:
    """What is wrong with the keys of the data of a root section."""
    return list(_section(data, root, ()))


def _section(data: Any, section: type[Section], path: KeyPath) -> Iterator[Finding]:
    if not isinstance(data, dict):
        return
    fields = fields_of(section)
    told = [key for key in data if key not in fields or _refusals(fields[key])]
    for key in data:
        if key in fields:
            yield from _field(data[key], fields[key], (*path, key))
        else:
            yield _unknown(key, data, section, path)
    written = {
        fields[key].name
        for key, value in data.items()
        if key in fields and _asks_for_something(value, fields[key])
    }
    for group, message in group_problems(section, written):
        is_missing = written.isdisjoint(section.one_of[group])
        if not (is_missing and told):
            yield Finding(path, message)


def _asks_for_something(value: Any, field: FieldShape) -> bool:
    """Whether a member of a one-of group counts as set; an empty section does, an empty list or mapping does not."""
    if isinstance(field.shape, ListShape | MapShape):
        return bool(value)
    return value is not None


def _unknown(key: str, data: dict[str, Any], section: type[Section], path: KeyPath) -> Finding:
    known = list(fields_of(section))
    python_names = {field.name: known_key for known_key, field in fields_of(section).items()}
    near = python_names.get(key) or nearest_name(key, known)
    meant = (*path, near) if near is not None and near not in data else None
    guess = f"did you mean '{near}'?" if near else hint(key, known)
    return Finding((*path, key), f"unknown key; {guess}", meant)


def _field(value: Any, field: FieldShape, path: KeyPath) -> Iterator[Finding]:
    for refusal in _refusals(field):
        yield Finding(path, f"cannot be used: {refusal.reason}")
    if value is not None or not _can_be_null(field):
        yield from _value(value, field.shape, path)


def _refusals(field: FieldShape) -> list[Refused]:
    return [marker for marker in field.markers if isinstance(marker, Refused)]


def _can_be_null(field: FieldShape) -> bool:
    """Whether null says what leaving the key out says: `num_workers: null` is 'choose for me'."""
    return not (field.info.is_required() or isinstance(field.shape, SectionShape)) and field.default is None


def _value(value: Any, shape: Shape, path: KeyPath) -> Iterator[Finding]:
    if value is None and not isinstance(shape, AnyShape):
        is_section = isinstance(shape, SectionShape)
        instead = "write {} for a section with default values" if is_section else "give it a value"
        yield Finding(path, f"is empty; {instead}, or remove the key", path)
    elif isinstance(shape, SectionShape):
        yield from _section(value, shape.section, path)
    elif isinstance(shape, ListShape) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _element(item, shape.item, (*path, index))
    elif isinstance(shape, MapShape) and isinstance(value, dict):
        for key, item in value.items():
            yield from _scalar(key, path, _INT64_BITS)
            yield from _element(item, shape.value, (*path, key))
    elif isinstance(shape, AnyShape):
        yield from _free_value(value, path)
    else:
        yield from _scalar(value, path, _INT64_BITS)


def _element(value: Any, shape: Shape, path: KeyPath) -> Iterator[Finding]:
    if is_free_element(shape):
        yield from _free_value(value, path)
    if not isinstance(shape, AnyShape):
        yield from _value(value, shape, path)


def _free_value(value: Any, path: KeyPath) -> Iterator[Finding]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _free_value(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _scalar(key, path, _DOUBLE_BITS)
            yield from _free_value(item, (*path, key))
    else:
        yield from _scalar(value, path, _DOUBLE_BITS)


def _scalar(value: Any, path: KeyPath, num_bits: int) -> Iterator[Finding]:
    """Values that one syntax can hold and another cannot."""
    if isinstance(value, int) and not -(1 << num_bits) <= value < 1 << num_bits:
        yield Finding(path, f"is {value}; expected an integer below 2^{num_bits}", path)
    elif isinstance(value, str) and not _is_text(value):
        yield Finding(path, "holds half of a surrogate pair, which is not text", path)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
