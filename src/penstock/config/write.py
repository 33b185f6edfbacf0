"""A section -> a run file, in YAML or text format, which gives an equal section; and where two run files differ."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import yaml

from penstock.config.section import Section
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    SectionShape,
    Shape,
    SizeShape,
    UnionShape,
    fields_of,
    is_free_element,
)
from penstock.config.sizes import exact_size
from penstock.config.syntax import resolve_plain

_ODD_LINE_BREAKS = {"\r", "\x85", "\u2028", "\u2029"}
"""Characters that YAML folds into a space unless they are escaped, which only double quotes do."""

_ESCAPES = {chr(code): f"\\x{code:02x}" for code in (*range(32), 127)} | {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def section_data(section: Section, *, full: bool = False) -> dict[str, Any]:
    """The fields that were written, by the keys of the file; `full` adds every default that is in effect.

    Fields that only old files use appear only when they were written.
    """
    return {
        key: _plain_value(getattr(section, field.name), field.shape, full)
        for key, field in fields_of(type(section)).items()
        if getattr(section, field.name) is not None
        and (field.name in section.model_fields_set or (full and not field.markers))
    }


def _plain_value(value: Any, shape: Shape, full: bool) -> Any:
    if isinstance(value, Section):
        return section_data(value, full=full)
    if isinstance(value, Enum):
        return value.value
    members = shape.members if isinstance(shape, UnionShape) else (shape,)
    if SizeShape() in members and isinstance(value, int):
        return exact_size(value)
    if isinstance(value, Mapping):
        item = shape.value if isinstance(shape, MapShape) else shape
        return {key: _plain_value(entry, item, full) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        item = shape.item if isinstance(shape, ListShape) else shape
        return [_plain_value(entry, item, full) for entry in value]
    return value


def dump_yaml(section: Section, *, full: bool = False) -> str:
    data = section_data(section, full=full)
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def dump_text(section: Section, *, full: bool = False) -> str:
    lines = _section_lines(section_data(section, full=full), type(section))
    return "".join(f"{line}\n" for line in lines)


class _Dumper(yaml.SafeDumper):
    """Quotes every string that our reader would take for something else, and indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def _represent_string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_safe = isinstance(resolve_plain(text), str) and not _ODD_LINE_BREAKS & set(text)
    style = None if is_safe else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_string)


# --- Text format ---------------------------------------------------------------------------------------------


def _section_lines(data: dict[str, Any], section: type[Section]) -> Iterator[str]:
    fields = fields_of(section)
    for key, value in data.items():
        yield from _field_lines(key, value, fields[key].shape)


def _field_lines(key: str, value: Any, shape: Shape) -> Iterator[str]:
    if isinstance(shape, ListShape | MapShape) and not value:
        yield f"{key}: []"
    elif isinstance(shape, ListShape):
        yield from _list(key, value, shape.item)
    elif isinstance(shape, MapShape) and is_free_element(shape.value):
        yield from _block(key, _struct_lines(value))
    elif isinstance(shape, MapShape):
        for name, item in value.items():
            yield from _block(key, [f"key: {_quoted(name)}", *_field_lines("value", item, shape.value)])
    elif isinstance(shape, SectionShape):
        yield from _block(key, _section_lines(value, shape.section))
    elif isinstance(shape, AnyShape):
        yield from _block(key, _free_lines(value))
    else:
        yield f"{key}: {_scalar(value, shape)}"


def _list(key: str, values: list[Any], item: Shape) -> Iterator[str]:
    if is_free_element(item) or isinstance(item, SectionShape):
        for value in values:
            yield from _field_lines(key, value, AnyShape() if is_free_element(item) else item)
    else:
        yield f"{key}: [{', '.join(_scalar(value, item) for value in values)}]"


def _block(key: str, lines: Iterable[str]) -> Iterator[str]:
    inside = list(lines)
    if not inside:
        yield f"{key} {{}}"
        return
    yield f"{key} {{"
    yield from (f"  {line}" for line in inside)
    yield "}"


def _struct_lines(value: dict[str, Any]) -> Iterator[str]:
    for name, item in value.items():
        entry = [f"key: {_quoted(name)}", *_block("value", _free_lines(item))]
        yield from _block("fields", entry)


def _free_lines(value: Any) -> Iterator[str]:
    if value is None:
        yield "null_value: NULL_VALUE"
    elif isinstance(value, bool):
        yield f"bool_value: {_scalar(value, AnyShape())}"
    elif isinstance(value, int | float):
        yield f"number_value: {value!r}"
    elif isinstance(value, str):
        yield f"string_value: {_quoted(value)}"
    elif isinstance(value, dict):
        yield from _block("struct_value", _struct_lines(value))
    else:
        yield from _block(
            "list_value", (line for item in value for line in _block("values", _free_lines(item)))
        )


def _scalar(value: Any, shape: Shape) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        is_name = isinstance(shape, EnumShape) and value in shape.names
        return value if is_name else _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


# --- Where two run files differ, key by key ------------------------------------------------------------------

NAMES = ("feature_name", "group_name", "tower_name")
"""Keys that name an item of a list, so that one that moved counts as the same."""
NOT_COMPARED = frozenset({"model_dir"})
"""Differs always, and says nothing."""


@dataclass(frozen=True, slots=True)
class SettingDifference:
    key: str
    values: tuple[str | None, ...]


def differences(configs: Sequence[Mapping[str, Any]]) -> list[SettingDifference]:
    """The keys of which not all values are the same, in the order in which they are first met."""
    flat = [dict(flattened(config)) for config in configs]
    keys = dict.fromkeys(key for values in flat for key in values if key not in NOT_COMPARED)
    found = [SettingDifference(key, tuple(values.get(key) for values in flat)) for key in keys]
    return [difference for difference in found if len(set(difference.values)) > 1]


def flattened(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from flattened(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from flattened(item, f"{key}[{_name_of(item) or index}]")
    else:
        yield key, _written(value)


def _name_of(item: Any) -> str | None:
    """What an item of a list is called: by itself, or by the one section that it holds."""
    if not isinstance(item, Mapping):
        return None
    holders = (item, *(inner for inner in item.values() if isinstance(inner, Mapping)))
    return next((str(holder[key]) for holder in holders for key in NAMES if key in holder), None)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return "{}" if value == {} else str(value)


MAX_NAMED = 5
"""More are counted only: the line is read on a terminal."""
INPUTS = frozenset({"train_input_path", "eval_input_path"})
"""Other files are what new data are."""
OF_THE_START = frozenset({"train_config.fine_tune_checkpoint", "train_config.fine_tune_ckpt_param_map"})
"""What a run began with, which decides nothing when it goes on."""


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any], new_data: bool = False) -> str | None:
    """How many keys of two run files differ, and which, with both values.

    None where nothing differs, and where nothing is known of `before`.
    """
    passed_over = OF_THE_START | INPUTS if new_data else OF_THE_START
    found = [each for each in differences([before, now]) if each.key not in passed_over] if before else []
    if not found:
        return None
    named, num_more = [], len(found) - MAX_NAMED
    for difference in found[:MAX_NAMED]:
        before_value, value = ("not set" if value is None else value for value in difference.values)
        named.append(f"{difference.key} {before_value} -> {value}")
    more = f" and {num_more:,} more" if num_more > 0 else ""
    return f"{len(found):,} changed setting{'s' * (len(found) > 1)}: {', '.join(named)}{more}"
