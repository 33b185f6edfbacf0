"""What reading a text gives: data, where each key stands, and what is wrong."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from penstock.config.errors import Problem
from penstock.config.paths import KeyPath, Position, format_path


@dataclass(slots=True)
class Parsed:
    """Plain data with the place of every key, and the problems of the text.

    `readable` is False when the text breaks off so that its data mean nothing. `broken` holds places that the
    text writes but whose value could not be read: the problem is known, nothing more should be said about
    them.
    """

    data: Any = None
    positions: dict[KeyPath, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True
    broken: set[KeyPath] = field(default_factory=set)

    def add(self, path: KeyPath, message: str, position: Position | None = None) -> None:
        """Remembers a problem."""
        line, column = position or (None, None)
        self.problems.append(Problem(format_path(path), message, line, column))

    def give_up(self, message: str, position: Position | None = None) -> None:
        """Remembers the problem after which the rest of the text cannot be understood."""
        self.add((), message, position)
        self.readable = False


class TextPlaces:
    """Offsets of a text as lines and columns, both counted from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        for offset, character in enumerate(text):
            if character == "\n":
                self._starts.append(offset + 1)

    def position(self, offset: int) -> Position:
        """Line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column."""
        return self._starts[min(line, len(self._starts)) - 1] + column - 1
