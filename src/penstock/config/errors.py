"""Everything penstock raises on purpose, how a problem of a run file is shown, and guesses at what was meant.

PenstockError
  ConfigError      the run file is wrong; nothing was started
  DataError        a file, column or value is wrong; names file, row, column
  BudgetExceeded   a stage asked for more bytes than it was given
  CheckpointError  a checkpoint is missing, torn, or from another run
  WorkerError      a worker process was killed, crashed or hangs (runtime.worker_process)
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

KeyPath = tuple[str | int, ...]
"""Keys and indices from the root of a run file down to a value."""

Position = tuple[int, int]
"""Line and column, both counted from 1."""

_SHOWN = 12
"""So many known names are listed."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")


def format_path(path: KeyPath | str) -> str:
    """A path as users write it: feature_configs[3].id_feature.num_buckets."""
    if isinstance(path, str):
        return path
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like this one, if any comes close."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[near[0]] if near else None


def hint(name: str, known: Iterable[str]) -> str:
    """A question with the nearest name, or else the list of what is known."""
    names = sorted(known)
    near = nearest_name(name, names)
    if near is not None:
        return f"did you mean '{near}'?"
    if not names:
        return "nothing can be set here"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"known: {', '.join(names[:_SHOWN])}{more}"


class PenstockError(Exception):
    """A problem that the user can fix; its text says what, where, and what to do.

    `settings` are the settings of a run file that the text names: who has other words for them, as a Dataset has its
    arguments, puts these in their place.
    """

    def __init__(self, text: str = "", *settings: str) -> None:
        super().__init__(text)
        self.settings = settings


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, old or without effect in a run file, and where it stands."""

    path: KeyPath | str
    message: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        position = f"line {self.line}, column {self.column}: " if self.line is not None else ""
        path = format_path(self.path)
        return f"{position}{path}: {self.message}" if path else f"{position}{self.message}"


class ConfigError(PenstockError):
    """The run file is wrong. Holds every problem that was found, not only the first."""

    def __init__(self, problems: Sequence[Problem] | str, source: str | None = None) -> None:
        self.problems = [Problem("", problems)] if isinstance(problems, str) else list(problems)
        self.source = source
        prefix = f"{source}: " if source else ""
        if len(self.problems) == 1:
            text = f"{prefix}{self.problems[0]}"
        else:
            lines = "\n".join(f"  {problem}" for problem in self.problems)
            text = f"{prefix}{len(self.problems)} problems:\n{lines}"
        super().__init__(text, *(format_path(problem.path) for problem in self.problems))

    @classmethod
    def at(cls, path: str, message: str, *settings: str) -> Self:
        error = cls([Problem(path, message)])
        error.settings += settings
        return error


class DataError(PenstockError):
    """A file, a column or a value cannot be used."""

    @classmethod
    def at(
        cls,
        problem: str,
        *settings: str,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        value: object = None,
    ) -> Self:
        """A problem with where it stands, from the file down to the value; rows are counted from 0."""
        where = [
            file,
            None if row is None else f"row {row}",
            None if column is None else f"column '{column}'",
        ]
        subject = "" if value is None else f"value {value!r} "
        text = ": ".join([part for part in where if part is not None] + [f"{subject}{problem}"])
        return cls(text, *settings)


class BudgetExceeded(PenstockError):
    """A stage needs more bytes than it was given."""


class CheckpointError(PenstockError):
    """A checkpoint is missing, torn, or belongs to another run."""
