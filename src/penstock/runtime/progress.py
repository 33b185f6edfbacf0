"""How far a long piece of work is: a bar on a terminal, plain lines elsewhere, and nothing faster than one can read.

`Progress` counts and decides when a line is due; how it looks is up to the `Display` it was given, so that the
same object serves training, evaluation, prediction and sample data.
"""

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

Fields = Mapping[str, str]


class Display(Protocol):
    """Where progress is shown."""

    def show(self, done: int, total: int | None, fields: Fields) -> None:
        """Show the state now."""
        ...

    def note(self, line: str) -> None:
        """Show a line that stays."""
        ...

    def close(self) -> None:
        """Leave the terminal as it should stay."""
        ...


class PlainLines:
    """One line per call: for files, pipes and CI."""

    def __init__(self, title: str, unit: str, stream: TextIO | None = None) -> None:
        self._title, self._unit, self._stream = title, unit, stream or sys.stderr

    def show(self, done: int, total: int | None, fields: Fields) -> None:
        """Print one line."""
        of_total = f"/{total:,}" if total is not None else ""
        rest = "".join(f"  {name} {value}" for name, value in fields.items())
        print(f"{self._title}: {self._unit} {done:,}{of_total}{rest}", file=self._stream, flush=True)

    def note(self, line: str) -> None:
        """Print the line."""
        print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing to restore."""


class Bar:
    """A live bar with the time left."""

    def __init__(self, title: str, unit: str, console: Console) -> None:
        self._progress = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn(f"{unit} {{task.fields[count]}}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[rest]}"),
            console=console,
            transient=False,
        )
        self._task = self._progress.add_task(title, total=None, count="0", rest="")

    def show(self, done: int, total: int | None, fields: Fields) -> None:
        """Redraw; the first time, take the terminal."""
        self._progress.start()
        count = f"{done:,}/{total:,}" if total is not None else f"{done:,}"
        rest = "  ".join(f"{name} {value}" for name, value in fields.items())
        self._progress.update(self._task, completed=done, total=total, count=count, rest=rest)

    def note(self, line: str) -> None:
        """Print the line above the bar."""
        self._progress.console.print(line, highlight=False, markup=False)

    def close(self) -> None:
        """Draw the last state and give the terminal back."""
        self._progress.stop()


def open_display(title: str, unit: str, plain: bool = False) -> Display:
    """A bar where somebody watches a terminal, plain lines elsewhere or when asked for."""
    console = Console(stderr=True)
    if plain or not console.is_terminal:
        return PlainLines(title, unit)
    return Bar(title, unit, console)


class Progress:
    """Counts work and shows it every `every` units, but at most once per `min_seconds`; the end always, if asked."""

    def __init__(
        self,
        display: Display,
        total: int | None = None,
        every: int = 1,
        min_seconds: float = 1.0,
        show_end: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.done = total, 0
        self._display, self._every, self._min_seconds, self._clock = display, every, min_seconds, clock
        self._show_end = show_end
        self._shown_at, self._shown_done = clock(), 0
        self._fields: Callable[[], Fields] = dict

    def advance(self, count: int = 1, fields: Callable[[], Fields] = dict) -> None:
        """Count `count` units; `fields` is asked only when a line is due, so it may be dear."""
        before, self.done, self._fields = self.done, self.done + count, fields
        crossed = before // self._every != self.done // self._every
        if crossed and self._clock() - self._shown_at >= self._min_seconds:
            self._show()

    def note(self, line: str) -> None:
        """Show a line that stays."""
        self._display.note(line)

    def finish(self) -> None:
        """Show the last state, if it was not shown."""
        if self.done != self._shown_done:
            self._show()

    def _show(self) -> None:
        self._shown_at, self._shown_done = self._clock(), self.done
        self._display.show(self.done, self.total, self._fields())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._show_end:
            self.finish()
        self._display.close()
