"""What the user's code prints, line by line, so that it can be shown above a bar instead of through it."""

import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout

_MOST_END_SECONDS = 1.0
"""A process that the user's code has left behind may keep its end of the pipe."""

Show = Callable[[str], None]


@contextmanager
def lines_of_processes(show: Show) -> Iterator[int]:
    """A file descriptor that processes may have as their standard output; each line of it is shown."""
    reading, writing = os.pipe()
    thread = threading.Thread(target=_read, args=(reading, show), daemon=True)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)
        thread.join(_MOST_END_SECONDS)


@contextmanager
def lines_of_this_process(show: Show) -> Iterator[None]:
    """The same for what is printed here inside a `with` block."""
    printed = _Lines(show)
    with redirect_stdout(printed):
        try:
            yield
        finally:
            printed.end()


def _read(descriptor: int, show: Show) -> None:
    with open(descriptor, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            show(line.rstrip("\n"))


class _Lines(io.TextIOBase):
    """A text that gives on each line when it is whole."""

    def __init__(self, show: Show) -> None:
        self._show, self._rest = show, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._show(line)
        return len(text)

    def end(self) -> None:
        """Give on what has no end of line."""
        if self._rest:
            self._show(self._rest)
            self._rest = ""
