"""The grammar of edit paths.

train_config.num_steps                                a key of a section
feature_configs[2]   [-1]   [1:3]   [:]               entries of a list
feature_configs[raw_feature.feature_name=price]       every entry for which the condition holds
vocab_dict['two words']                               a key that is no plain name
"""

import re
from dataclasses import dataclass

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_INDEX = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")
_CONDITION = re.compile(r"([^=!<>]+)(!=|>=|<=|=|>|<)(.*)", re.DOTALL)
_QUOTED = re.compile(r"'(.*)'|\"(.*)\"", re.DOTALL)


class EditError(Exception):
    """An edit cannot be applied; the text says why."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a section or a map."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """One entry of a list; negative from its end."""

    index: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries of a list from start to before stop."""

    start: int | None
    stop: int | None


@dataclass(frozen=True, slots=True)
class Condition:
    """Entries of a list of which a field compares with a value."""

    steps: tuple["Step", ...]
    operator: str
    value: str
    text: str


Step = Key | Index | Slice | Condition


def split_edit(text: str) -> tuple[str, str]:
    """PATH=VALUE at the first `=` outside brackets."""
    depth = 0
    for offset, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth == 0:
            return text[:offset].strip(), text[offset + 1 :]
    raise EditError("is no edit; expected PATH=VALUE")


def read_steps(text: str) -> tuple[Step, ...]:
    """The steps of a path."""
    steps: list[Step] = []
    offset = 0
    while offset < len(text):
        if text[offset] == "[":
            end = _closing_bracket(text, offset)
            steps.append(_bracket(text[offset + 1 : end].strip()))
            offset = end + 1
        else:
            offset += text[offset] == "." and bool(steps)
            match = _KEY.match(text, offset)
            if match is None:
                raise EditError(f"is no path: expected a name at '{text[offset:]}'")
            steps.append(Key(match[0]))
            offset = match.end()
    if not steps:
        raise EditError("is no path: it is empty")
    return tuple(steps)


def show_steps(steps: tuple[Step, ...]) -> str:
    """Steps as users write them."""
    text = ""
    for step in steps:
        if isinstance(step, Key):
            plain = _KEY.fullmatch(step.name)
            text += f".{step.name}" if plain and text else step.name if plain else f"[{step.name!r}]"
        elif isinstance(step, Index):
            text += f"[{step.index}]"
        elif isinstance(step, Slice):
            text += f"[{'' if step.start is None else step.start}:{'' if step.stop is None else step.stop}]"
        else:
            text += f"[{step.text}]"
    return text


def _closing_bracket(text: str, start: int) -> int:
    depth = 0
    for offset in range(start, len(text)):
        depth += (text[offset] == "[") - (text[offset] == "]")
        if depth == 0:
            return offset
    raise EditError("is no path: a bracket is not closed")


def _bracket(inside: str) -> Step:
    if _INDEX.fullmatch(inside):
        return Index(int(inside))
    if match := _SLICE.fullmatch(inside):
        start, stop = match.groups()
        return Slice(int(start) if start else None, int(stop) if stop else None)
    if match := _QUOTED.fullmatch(inside):
        return Key(match[1] if match[1] is not None else match[2])
    if match := _CONDITION.fullmatch(inside):
        return Condition(read_steps(match[1].strip()), match[2], match[3].strip(), inside)
    raise EditError(f"is no path: '[{inside}]' is no index, slice or condition")
