"""Where an iteration over a Dataset is, and where the next one begins."""

from collections.abc import Callable, Iterator
from typing import Any, Self

from penstock.pipeline.dataset.opening import Opened
from penstock.pipeline.dataset.wording import own_words
from penstock.runtime.world import State


class Cursor:
    """The latest pass over a Dataset.

    A new pass begins with the epoch after a pass that came to its end, so that each has its own order of rows. One
    that was left before its end is begun again; to go on from where it was left, load its place.
    """

    def __init__(self, open_pass: Callable[[], Opened]) -> None:
        self._open = open_pass
        self._latest: Opened | None = None
        self._is_ready = False
        """Whether the next pass begins at the place of the latest, instead of anew."""

    def begin(self) -> "Pass":
        """The next pass."""
        with own_words():
            latest = self._ready()
        self._is_ready = False
        return Pass(latest, self)

    def end(self, opened: Opened) -> None:
        """A pass came to its end: the next one begins with the epoch after its last."""
        opened.set_epoch(opened.state_dict()["rows"]["epoch"] + 1)
        self._is_ready = self._is_ready or opened is self._latest

    @property
    def first_epoch(self) -> int:
        """The epoch with which the latest pass began, or the next one does."""
        return 0 if self._latest is None else int(self._latest.state_dict()["first_epoch"])

    @property
    def is_at_start(self) -> bool:
        """Whether the next pass is a whole one."""
        return self._latest is None or not self._is_ready or self._latest.state_dict()["rows"]["row"] == 0

    def state_dict(self) -> State:
        """The place of the latest pass; the start of the next, once that came to its end."""
        with own_words():
            return (self._latest or self._ready()).state_dict()

    def load_state_dict(self, state: State) -> None:
        """The next pass goes on from this place."""
        with own_words():
            opened = self._open()
            opened.load_state_dict(state)
        self._latest, self._is_ready = opened, True

    def set_epoch(self, epoch: int) -> None:
        """The next pass begins with this epoch."""
        with own_words():
            self._latest = self._open()
        self._latest.set_epoch(epoch)
        self._is_ready = True

    def _ready(self) -> Opened:
        """The latest pass, put where the next one begins."""
        if self._latest is None or not self._is_ready:
            first_epoch = self.first_epoch
            self._latest = self._open()
            self._latest.set_epoch(first_epoch)
            self._is_ready = True
        return self._latest


class Pass(Iterator[Any]):
    """One iteration over a Dataset: `next` gives elements, `state_dict` the place after the last of them.

    A background thread, where there is one, ends with the iteration, with `close()`, or when nobody holds this any
    more.
    """

    def __init__(self, opened: Opened, cursor: Cursor) -> None:
        self._opened = opened
        self._cursor = cursor
        self._elements = _elements(opened)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._elements)
        except StopIteration:
            if self._elements is not _NOTHING:
                self._elements = _NOTHING
                self._cursor.end(self._opened)
            raise
        except BaseException:
            self._elements = _NOTHING
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state_dict(self) -> State:
        """The place after the last element given out."""
        return self._opened.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Go on from a place."""
        self.close()
        with own_words():
            self._opened.load_state_dict(state)
        self._elements = _elements(self._opened)

    def close(self) -> None:
        """End reading, and the background thread where there is one; the place stays."""
        close = getattr(self._elements, "close", None)
        if close is not None:
            close()


_NOTHING: Iterator[Any] = iter(())


def _elements(opened: Opened) -> Iterator[Any]:
    """The elements; a function of its own, so that it ends as soon as the pass is let go."""
    try:
        with own_words():
            yield from opened
    finally:
        close = getattr(opened, "close", None)
        if close is not None:
            close()
