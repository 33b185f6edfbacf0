"""Notices tasks of which nothing is heard for far longer than of any before: perhaps a function that never returns.

Nobody is killed for it: a large file is no error, and only the user knows how long one may take. A line tells where it
is, so that somebody can look.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.prep.preparing.tasks import Task

_LEAST_SECONDS = 60.0
_MOST_TIMES_OTHERS = 10


@dataclass(slots=True)
class _Running:
    file: str
    heard_at: float
    told_seconds: float = 0.0
    """How long it was silent when that was told last."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A task that should have told something by now."""

    task: int
    file: str
    seconds: float
    line: str


class Patience:
    """Remembers when each running task told something last."""

    def __init__(
        self, least_seconds: float = _LEAST_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._least_seconds, self._clock = least_seconds, clock
        self._running: dict[int, _Running] = {}
        self._longest_seconds = 0.0

    def began(self, task: Task) -> None:
        """Somebody begins with it, or begins again."""
        self._running[task.number] = _Running(task.files[0].path, self._clock())

    def heard(self, number: int, file: str) -> None:
        """It told that it is at this file."""
        running = self._running.get(number)
        if running is not None:
            self._learn(running)
            running.file, running.heard_at, running.told_seconds = file, self._clock(), 0.0

    def ended(self, number: int) -> None:
        """It is done."""
        running = self._running.pop(number, None)
        if running is not None:
            self._learn(running)

    def put_back(self, task: Task) -> None:
        """Nobody is at it for now."""
        self._running.pop(task.number, None)

    def silent(self) -> Iterator[Silence]:
        """Those to tell of: when they are silent for far too long, and again each time that this has doubled."""
        allowed = max(self._least_seconds, _MOST_TIMES_OTHERS * self._longest_seconds)
        for number, running in self._running.items():
            seconds = self._clock() - running.heard_at
            if seconds > max(allowed, 2 * running.told_seconds):
                running.told_seconds = seconds
                yield Silence(number, running.file, seconds, self._line(running, seconds))

    def _learn(self, running: _Running) -> None:
        self._longest_seconds = max(self._longest_seconds, self._clock() - running.heard_at)

    def _line(self, running: _Running, seconds: float) -> str:
        others = f"; until now it was {self._longest_seconds:.1f} s at most" if self._longest_seconds else ""
        return (
            f"{running.file}: nothing was heard of this file for {seconds:.0f} s{others}; it goes on, Ctrl-C stops and "
            "keeps what is done"
        )
