"""What reading a text gives: data, where each key stands, and what is wrong."""

from dataclasses import dataclass, field
from typing import Any

from penstock.config.errors import Problem
from penstock.config.paths import Path, Position, format_path


@dataclass(slots=True)
class Parsed:
    """Plain data with the place of every key, and the problems of the text."""

    data: Any
    positions: dict[Path, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, message: str, position: Position | None = None) -> None:
        """Remembers a problem."""
        line, column = position or (None, None)
        self.problems.append(Problem(format_path(path), message, line, column))
