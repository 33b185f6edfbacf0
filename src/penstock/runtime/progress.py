"""How far a long piece of work is: a bar on a terminal, plain lines elsewhere, and nothing faster than one can read.

`ProgressLogger` counts, knows the rate and the time left, and decides when a line is due. It can be used alone:

    with ProgressLogger("upload", "file", total=len(files)) as progress:
        for file in files:
            ...
            progress.advance()
"""

import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

Fields = Mapping[str, str]

WIDTH = 80
"""Columns that lines keep to: those of a terminal that nobody has made wider."""
_MAX_PAUSE_SECONDS = 60.0
_BAR_CELLS, _MIN_BAR_CELLS = 24, 4
_TIME_LEFT = "left"


class Display(Protocol):
    stays: bool
    """Whether what was shown before is still there, so that long work should show less and less often."""

    def show(self, done: int, total: int | None, fields: Fields) -> None: ...
    def note(self, line: str) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class PlainLines:
    """One line per call, of what fits `WIDTH`: for files, pipes and CI."""

    title: str
    unit: str
    stream: TextIO
    stays: bool = True

    def show(self, done: int, total: int | None, fields: Fields) -> None:
        of_total = f"/{total:,}" if total is not None else ""
        count = f"{self.title}: {self.unit} {done:,}{of_total}"
        print("  ".join([count, *fitting(fields, WIDTH - len(count))]), file=self.stream, flush=True)

    def note(self, line: str) -> None:
        print(line, file=self.stream, flush=True)

    def close(self) -> None:
        pass


class Bar:
    """A live bar, of what fits in one line of the terminal."""

    stays = False

    def __init__(self, title: str, unit: str, console: Console) -> None:
        self._title, self._unit = title, unit
        self._bar = BarColumn(bar_width=_BAR_CELLS)
        columns = TextColumn("{task.description}"), self._bar, TextColumn("{task.fields[text]}")
        self._progress = Progress(*columns, console=console, transient=False)
        self._task = self._progress.add_task(title, total=None, text="")

    def show(self, done: int, total: int | None, fields: Fields) -> None:
        self._progress.start()
        count = f"{self._unit} {done:,}/{total:,}" if total is not None else f"{self._unit} {done:,}"
        width = self._progress.console.width - len(self._title) - len(" ") - _MIN_BAR_CELLS - len(" ")
        text = "  ".join([count, *fitting(fields, width - len(count))])
        self._bar.bar_width = min(_BAR_CELLS, _MIN_BAR_CELLS + max(0, width - len(text)))
        self._progress.update(self._task, completed=done, total=total, text=text)

    def note(self, line: str) -> None:
        self._progress.console.print(line, highlight=False, markup=False)

    def close(self) -> None:
        self._progress.stop()


def fitting(fields: Fields, num_cells: int) -> list[str]:
    """Fields as text, as many as fit: the time left before all others, those by their order.

    >>> fitting({"samples": "1,500", "memory": "150MiB", "left": "0:20"}, 30)
    ['samples 1,500', 'left 0:20']
    """
    texts = {name: f"{name} {value}" for name, value in fields.items()}
    chosen: set[str] = set()
    for name in sorted(texts, key=lambda name: name != _TIME_LEFT):
        num_cells -= len("  ") + len(texts[name])
        if num_cells < 0:
            break
        chosen.add(name)
    return [text for name, text in texts.items() if name in chosen]


class ProgressLogger:
    """Counts work and shows it at most once per `min_seconds`; the end always, if asked.

    With `every`, it is shown whenever that many units were done. Without, lines that stay (in files, pipes and CI) come
    the more seldom the longer the work takes: a tenth of the time that has passed, and a minute at most, lies between.
    """

    def __init__(
        self,
        title: str,
        unit: str,
        total: int | None = None,
        every: int | None = None,
        *,
        done: int = 0,
        plain: bool = False,
        show_rate: bool = True,
        show_end: bool = True,
        min_seconds: float = 1.0,
        display: Display | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`done` units were done before, and do not count for the rate. `plain`: lines, also on a terminal.

        `show_rate`: false where the fields have a rate that says more than units a second.
        """
        self.total, self.done = total, done
        self._units = unit if unit.endswith("s") else f"{unit}es" if unit.endswith("ch") else f"{unit}s"
        self._every, self._min_seconds, self._clock = every, min_seconds, clock
        if display is None:
            console = Console(stderr=True)
            is_plain = plain or not console.is_terminal
            display = PlainLines(title, unit, sys.stderr) if is_plain else Bar(title, unit, console)
        self._display = display
        self._show_rate, self._show_end = show_rate, show_end
        self._started_at, self._done_before = clock(), done
        self._shown_at, self._shown_done = self._started_at, done
        self._fields: Callable[[], Fields] = dict

    def advance(self, count: int = 1, fields: Callable[[], Fields] = dict) -> None:
        """Count `count` units; `fields` is asked only when a line is due, so it may be dear."""
        before, self.done, self._fields = self.done, self.done + count, fields
        every = self._every or 1
        if count and before // every == self.done // every:
            return
        now, pause = self._clock(), self._min_seconds
        if self._every is None and self._display.stays:
            pause = max(pause, min((now - self._started_at) / 10, _MAX_PAUSE_SECONDS))
        if now - self._shown_at >= pause:
            self._show()

    def refresh(self, fields: Callable[[], Fields]) -> None:
        """Show what goes on inside a unit that takes long."""
        self.advance(0, fields)

    def note(self, line: str) -> None:
        self._display.note(line)

    def finish(self) -> None:
        if self.done != self._shown_done:
            self._show()

    def _show(self) -> None:
        self._shown_at, self._shown_done = self._clock(), self.done
        fields = {**self._fields()}
        seconds = self._shown_at - self._started_at
        if seconds > 0 and self.done != self._done_before:
            rate = (self.done - self._done_before) / seconds
            if self._show_rate:
                fields[f"{self._units}/s"] = f"{rate:,.1f}" if rate < 100 else f"{rate:,.0f}"
            if self.total is not None and self.done < self.total:
                fields[_TIME_LEFT] = clock_time((self.total - self.done) / rate)
        self._display.show(self.done, self.total, fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._show_end:
            self.finish()
        self._display.close()


def clock_time(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
