"""Text -> plain data with positions, in three syntaxes.

Each reader turns text into nested dicts, lists and scalars, keeps the line and column of every key, and
collects what is wrong with the text instead of stopping at the first problem. None of them judges values;
they look at the shape of the root section only where the syntax needs it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from penstock.config.errors import KeyPath, Position, Problem, format_path
from penstock.config.section import Section

SYNTAX_OF_SUFFIX = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".config": "text",
    ".pbtxt": "text",
    ".textproto": "text",
}

_READERS = {
    "yaml": "penstock.config.syntax.yaml_syntax:read_yaml",
    "json": "penstock.config.syntax.yaml_syntax:read_json",
    "text": "penstock.config.syntax.text_syntax:read_text",
}


@dataclass(slots=True)
class Parsed:
    """Plain data with the position of every key, and the problems of the text.

    `readable` is False when the text breaks off so that its data mean nothing. `broken` holds paths whose value
    could not be read: the problem is known, and nothing more should be reported about them.
    """

    data: Any = None
    positions: dict[KeyPath, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True
    broken: set[KeyPath] = field(default_factory=set)

    def add(self, path: KeyPath, message: str, position: Position | None = None) -> None:
        line, column = position or (None, None)
        self.problems.append(Problem(format_path(path), message, line, column))

    def give_up(self, message: str, position: Position | None = None) -> None:
        """Keeps only the problem after which the rest of the text cannot be understood."""
        self.problems.clear()
        self.add((), message, position)
        self.readable = False


def read(text: str, syntax: str, root: type[Section]) -> Parsed:
    """Reads text in one of the syntaxes 'yaml', 'json' and 'text'. Only that one is imported."""
    module, _, name = _READERS[syntax].partition(":")
    reader = cast(Callable[[str, type[Section]], Parsed], getattr(import_module(module), name))
    try:
        return reader(text.removeprefix("\ufeff"), root)
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError:  # Python reads no integer of more than 4,300 digits
        problem = "holds a number with too many digits"
    parsed = Parsed()
    parsed.give_up(problem)
    return parsed
