"""Changes to a run file from the command line: PATH=VALUE, or a JSON object of many paths.

train_config.num_steps                                a key of a section
feature_configs[2]   [-1]   [1:3]   [:]               entries of a list
feature_configs[raw_feature.feature_name=price]       every entry for which the condition holds
vocab_dict['two words']                               a key that is no plain name

A path is read into steps, the steps find the slots of the data that they mean, and the value takes the type of
the field there. Nothing is checked here beyond the path: the edited data are checked as a whole, so that every
problem is reported once.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from penstock.config.errors import KeyPath, Problem, format_path, hint, nearest_name
from penstock.config.section import Section
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    SizeShape,
    UnionShape,
    child_shape,
    fields_of,
    sections_below,
)
from penstock.config.sizes import parse_size
from penstock.config.syntax import read_json, read_yaml

Edits = Sequence[str | tuple[str, Any]] | Mapping[str, Any]
"""PATH=VALUE strings and pairs of path and value, applied in order; or a mapping from path to value."""

_BRACKETS = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
"""With what a condition may hold in it: the index of a list."""
_EDIT = re.compile(rf"((?:[^\[\]=]|{_BRACKETS})*)=(.*)", re.DOTALL)
_PART = re.compile(rf"\.?(?P<key>[A-Za-z_][A-Za-z0-9_\-]*)|(?P<brackets>{_BRACKETS})")
_INDEX = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")
_CONDITION = re.compile(r"([A-Za-z_][A-Za-z0-9_\-.]*)\s*(!=|>=|<=|=|>|<)(.*)", re.DOTALL)
_QUOTED = re.compile(r"'(.*)'|\"(.*)\"", re.DOTALL)
_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class _EditError(Exception):
    """An edit cannot be applied; the text says why."""


@dataclass(slots=True)
class Edited:
    problems: list[Problem] = field(default_factory=list)
    paths: set[KeyPath] = field(default_factory=set)


def edit_data(root: type[Section], data: dict[str, Any], edits: Edits) -> Edited:
    """Applies edits to the data of a root section, in place. A null takes the key or entry out."""
    edited = Edited()
    for edit in edits.items() if isinstance(edits, Mapping) else edits:
        path, value = (edit, None) if isinstance(edit, str) else edit
        try:
            if isinstance(edit, str):
                match = _EDIT.fullmatch(edit)
                if match is None:
                    raise _EditError("is no edit; expected PATH=VALUE")
                path, value = match[1].strip(), None if match[2].strip() == "null" else match[2]
            # Looking for what to remove must not create the sections on the way to it.
            slots = _find_slots(root, deepcopy(data) if value is None else data, _read_steps(path))
            for slot in reversed(slots):
                if value is None:
                    _remove(data, slot)
                else:
                    slot.put(_value_for(value, slot.shape) if isinstance(value, str) else deepcopy(value))
                edited.paths.add(slot.path)
        except _EditError as error:
            edited.problems.append(Problem(path, str(error)))
    return edited


def _remove(data: Any, slot: "_Slot") -> None:
    if slot.is_required:
        raise _EditError("is required, so that it cannot be removed; give it another value")
    *way, last = slot.path
    for part in way:
        is_there = part in data if isinstance(data, dict) else isinstance(part, int) and part < len(data)
        data = data[part] if is_there else {}
    if not isinstance(data, dict) or last in data:
        del data[last]


# --- The grammar of paths ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Condition:
    keys: list[str]
    operator: str
    value: str
    text: str


_Step = str | int | slice | _Condition
"""A key of a section or map, an index of a list (negative from its end), a range of it, or a condition."""


def _read_steps(text: str) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    offset = 0
    while offset < len(text):
        match = _PART.match(text, offset)
        if match is None and text[offset] == "[":
            raise _EditError("is no path: a bracket is not closed")
        if match is None or (not steps and text[offset] == "."):
            rest = text[offset:].removeprefix("." if steps else "")
            raise _EditError(f"is no path: expected a name at '{rest}'")
        steps.append(match["key"] or _bracket(match["brackets"][1:-1].strip()))
        offset = match.end()
    if not steps:
        raise _EditError("is no path: it is empty")
    return tuple(steps)


def _bracket(inside: str) -> _Step:
    if _INDEX.fullmatch(inside):
        return int(inside)
    if match := _SLICE.fullmatch(inside):
        return slice(*(int(end) if end else None for end in match.groups()))
    if match := _QUOTED.fullmatch(inside):
        return str(match[1] if match[1] is not None else match[2])
    if match := _CONDITION.fullmatch(inside):
        return _Condition(match[1].split("."), match[2], match[3].strip(), inside)
    raise _EditError(f"is no path: '[{inside}]' is no index, slice or condition")


def _show(steps: Sequence[_Step]) -> str:
    text = ""
    for step in steps:
        if isinstance(step, str | int):
            part = format_path((step,))
            text += f".{part}" if text and not part.startswith("[") else part
        elif isinstance(step, slice):
            text += f"[{'' if step.start is None else step.start}:{'' if step.stop is None else step.stop}]"
        else:
            text += f"[{step.text}]"
    return text


# --- The slots that a path means -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slot:
    """A key of a mapping, or an index of a list.

    `rivals` are the keys of other members of its one-of groups. `is_required`: null cannot take it out.
    `is_one_of_many`: the path may mean several slots, and those to which it does not apply are passed over.
    """

    holder: Any
    key: str | int
    shape: Shape
    path: KeyPath
    rivals: tuple[str, ...] = ()
    is_required: bool = False
    is_one_of_many: bool = False

    def put(self, value: Any) -> None:
        for other in self.rivals:
            self.holder.pop(other, None)
        self.holder[self.key] = value

    def open(self) -> Any:
        """What the slot holds, to go on into. A missing section is created, an entry of a list never."""
        is_list = isinstance(self.shape, ListShape)
        value = self.holder.get(self.key) if isinstance(self.holder, dict) else self.holder[self.key]
        if value is None:
            value = [] if is_list else {}
            self.put(value)
        if not isinstance(value, list if is_list else dict):
            raise _EditError(f"goes through '{format_path(self.path)}', which is not {self.shape.words}")
        return value


def _find_slots(root: type[Section], data: Any, steps: tuple[_Step, ...]) -> list[_Slot]:
    """Every slot that the path means. Raises _EditError when it means none."""
    slots = [_Slot({"": data}, "", SectionShape(root), ())]
    for number, step in enumerate(steps):
        before, rest = steps[:number], steps[number + 1 :]
        if isinstance(step, str):
            slots = [found for slot in slots for found in _key_slots(slot, step, before, rest)]
        else:
            slots = [found for slot in slots for found in _entry_slots(slot, step, before)]
        if not slots:
            raise _EditError(f"matches nothing: no entry of '{_show(before)}' has '{_show([step])}'")
    return slots


def _key_slots(slot: _Slot, key: str, before: Sequence[_Step], rest: Sequence[_Step]) -> list[_Slot]:
    if not isinstance(slot.shape, SectionShape | MapShape | AnyShape):
        raise _EditError(f"goes wrong at '{key}': '{_show(before)}' is {slot.shape.words}")
    shape = child_shape(slot.shape, key) or AnyShape()
    rivals: tuple[str, ...] = ()
    is_required = False
    if isinstance(slot.shape, SectionShape):
        section, fields = slot.shape.section, fields_of(slot.shape.section)
        if key not in fields:
            if below := sections_below(section, key):
                meant = "' or '".join(_show([*before, each, key, *rest]) for each in below)
                raise _EditError(f"unknown path; did you mean '{meant}'?")
            near = nearest_name(key, fields)
            if near is not None:
                raise _EditError(f"unknown path; did you mean '{_show([*before, near, *rest])}'?")
            where = f" in '{_show(before)}'" if before else ""
            raise _EditError(f"unknown path: there is no '{key}'{where}; {hint(key, fields)}")
        name = fields[key].name
        others = {each for group in section.one_of.values() if name in group for each in group} - {name}
        rivals = tuple(other for other, field in fields.items() if field.name in others)
        is_required = fields[key].info.is_required()
    holder = slot.open()
    if slot.is_one_of_many and key not in holder and not holder.keys().isdisjoint(rivals):
        return []
    return [_Slot(holder, key, shape, (*slot.path, key), rivals, is_required, slot.is_one_of_many)]


def _entry_slots(slot: _Slot, step: int | slice | _Condition, before: Sequence[_Step]) -> list[_Slot]:
    where = _show(before)
    if not isinstance(slot.shape, ListShape):
        raise _EditError(f"goes wrong at '{_show([step])}': '{where}' is {slot.shape.words}, not a list")
    entries, item = slot.open(), slot.shape.item
    if isinstance(step, int):
        if not -len(entries) <= step < len(entries):
            raise _EditError(f"has no entry [{step}]: '{where}' has {len(entries)}")
        found = [step % len(entries)]
    elif isinstance(step, slice):
        found = list(range(len(entries)))[step]
        if not found:
            raise _EditError(f"matches nothing: '{where}' has {len(entries)} entries")
    else:
        found = _matching(entries, step, item, where)
    is_many = slot.is_one_of_many or not isinstance(step, int)
    return [_Slot(entries, index, item, (*slot.path, index), (), False, is_many) for index in found]


# --- Conditions ----------------------------------------------------------------------------------------------


def _matching(entries: list[Any], condition: _Condition, item: Shape, where: str) -> list[int]:
    """The indices of the entries for which a condition holds; entries without the field never match."""
    shape, defaults = _value_of_condition(item, condition.keys)
    wanted = _comparable(_value_for(condition.value, shape), shape)
    needs_numbers = condition.operator not in ("=", "!=")
    if needs_numbers and not _is_number(wanted):
        raise _EditError(f"compares '{condition.text}', but {condition.operator} needs a number")
    found, values = [], set()
    for index, entry in enumerate(entries):
        value = entry
        for key, default in zip(condition.keys, defaults, strict=True):
            value = value.get(key, default) if isinstance(value, dict) else None
        value = _comparable(value, shape)
        if value is not None:
            values.add(str(value))
            if (_is_number(value) or not needs_numbers) and _COMPARE[condition.operator](value, wanted):
                found.append(index)
    if not found:
        near = nearest_name(condition.value, sorted(values))
        guess = f"; did you mean '[{'.'.join(condition.keys)}{condition.operator}{near}]'?" if near else ""
        none = f"matches none of the {len(entries)} entries"
        raise _EditError(f"'[{condition.text}]' {none} of '{where}'{guess}")
    return found


def _value_of_condition(shape: Shape, keys: list[str]) -> tuple[Shape, list[Any]]:
    """What the keys lead to, and the value that is in effect at each key where a section does not write it."""
    defaults = []
    for number, key in enumerate(keys, start=1):
        fields = fields_of(shape.section) if isinstance(shape, SectionShape) else {}
        if isinstance(shape, SectionShape) and key not in fields:
            path = ".".join(keys[:number])
            raise _EditError(f"has a condition on '{path}': unknown key; {hint(key, fields)}")
        inner = None if isinstance(shape, ListShape) else child_shape(shape, key)
        if inner is None:
            raise _EditError(f"has a condition on '{'.'.join(keys)}', which is not one value")
        has_default = key in fields and not isinstance(inner, SectionShape)
        defaults.append(fields[key].default if has_default else None)
        shape = inner
    if not isinstance(shape, ScalarShape | SizeShape | UnionShape | EnumShape):
        raise _EditError(f"has a condition on '{'.'.join(keys)}', which is {shape.words}")
    return shape, defaults


def _comparable(value: Any, shape: Shape) -> Any:
    try:
        return parse_size(value) if isinstance(shape, SizeShape) and isinstance(value, str) else value
    except ValueError:
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- The value takes the type of the field -------------------------------------------------------------------


def _value_for(text: str, shape: Shape) -> Any:
    """A string as a value of this shape; one that does not fit stays a string, for the check to complain about."""
    word = text.strip()
    if isinstance(shape, ListShape | MapShape | SectionShape):
        return _structure(word, shape) if word.startswith(("[", "{")) else word
    if isinstance(shape, AnyShape):
        parsed = read_json(text)
        return parsed.data if parsed.readable else text
    if isinstance(shape, UnionShape):
        values = (_value_for(text, member) for member in shape.members)
        return next((value for value in values if not isinstance(value, str)), text)
    if not isinstance(shape, ScalarShape):
        return int(word) if isinstance(shape, SizeShape) and _INTEGER.fullmatch(word) else word
    if shape.type is bool:
        return {"true": True, "false": False}.get(word.lower(), text)
    if shape.type is int:
        return int(word) if _INTEGER.fullmatch(word) else text
    if shape.type is float:
        try:
            return float(word)
        except ValueError:
            return text
    return text


def _structure(text: str, shape: Shape) -> Any:
    """A list or section in JSON, in text format, or in YAML's short form."""
    parsed = read_json(text)
    if parsed.readable and not parsed.problems:
        return parsed.data
    if isinstance(shape, SectionShape) and text.startswith("{") and text.endswith("}"):
        from penstock.config.text_syntax import read_text  # for the few who write it

        parsed = read_text(text[1:-1], shape.section)
        if parsed.readable and not parsed.problems:
            return parsed.data
    parsed = read_yaml(text, shape, typed=True)
    if not parsed.readable or parsed.problems:
        raise _EditError(f"is set to '{text}', which can be read neither as JSON nor as {{...}}")
    return parsed.data
