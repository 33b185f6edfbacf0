"""Everything penstock raises on purpose.

PenstockError
  ConfigError      the run file is wrong; nothing was started
  DataError        a file, column or value is wrong; names file, row, column
  BudgetExceeded   a stage asked for more bytes than it was given
  CheckpointError  a checkpoint is missing, torn, or from another run
  WorkerError      a worker process was killed, crashed or hangs (runtime.worker_process)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


class PenstockError(Exception):
    """A problem that the user can fix; its text says what, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a run file, and where it stands."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line is not None else ""
        return f"{place}{self.path}: {self.message}" if self.path else f"{place}{self.message}"


class ConfigError(PenstockError):
    """The run file is wrong. Holds every problem that was found, not only the first."""

    def __init__(self, problems: Sequence[Problem] | str, source: str | None = None) -> None:
        self.problems = [Problem("", problems)] if isinstance(problems, str) else list(problems)
        self.source = source
        super().__init__(self._text())

    @classmethod
    def at(cls, path: str, message: str) -> Self:
        """One problem at one place of the run file."""
        return cls([Problem(path, message)])

    def _text(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        if len(self.problems) == 1:
            return f"{prefix}{self.problems[0]}"
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        return f"{prefix}{len(self.problems)} problems:\n{lines}"


class DataError(PenstockError):
    """A file, a column or a value cannot be used."""

    @classmethod
    def at(
        cls,
        problem: str,
        *,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        value: object = None,
    ) -> Self:
        """A problem with its place, from the file down to the value; rows are counted from 0."""
        places = [
            file,
            None if row is None else f"row {row}",
            None if column is None else f"column '{column}'",
        ]
        subject = "" if value is None else f"value {value!r} "
        return cls(": ".join([place for place in places if place is not None] + [f"{subject}{problem}"]))


class BudgetExceeded(PenstockError):
    """A stage needs more bytes than it was given."""


class CheckpointError(PenstockError):
    """A checkpoint is missing, torn, or belongs to another run."""
