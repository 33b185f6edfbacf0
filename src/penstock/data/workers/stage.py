"""A stream whose items are made from record batches by worker processes."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar, overload

import pyarrow as pa

from penstock.data.workers.crew import Crew, Finish, Parcel
from penstock.data.workers.patience import DEFAULT_PATIENCE, Patience
from penstock.data.workers.process import Work
from penstock.readers.stream import Stream
from penstock.runtime.budget import Share
from penstock.runtime.state import State
from penstock.runtime.worker_process import WorkerError

R = TypeVar("R")
T = TypeVar("T")


class _End:
    """What stands for the end of an epoch, where an item may be anything."""


_END: Final = _End()


@overload
def in_workers(
    source: Stream[pa.RecordBatch],
    function: Callable[[pa.RecordBatch], T],
    num_workers: int,
    share: Share,
    *,
    finish: None = None,
    warm: Callable[[], None] | None = None,
    file_paths: Sequence[str] = (),
    patience: Patience = ...,
) -> "InWorkers[T]": ...


@overload
def in_workers(
    source: Stream[pa.RecordBatch],
    function: Callable[[pa.RecordBatch], R],
    num_workers: int,
    share: Share,
    *,
    finish: Callable[[R, pa.RecordBatch], T],
    warm: Callable[[], None] | None = None,
    file_paths: Sequence[str] = (),
    patience: Patience = ...,
) -> "InWorkers[T]": ...


def in_workers(
    source: Stream[pa.RecordBatch],
    function: Callable[[pa.RecordBatch], Any],
    num_workers: int,
    share: Share,
    *,
    finish: Finish | None = None,
    warm: Callable[[], None] | None = None,
    file_paths: Sequence[str] = (),
    patience: Patience = DEFAULT_PATIENCE,
) -> "InWorkers[Any]":
    """What a function makes of each record batch of the source, made by processes, in the order of the source.

    The function must be pure and picklable; it is loaded once, by a process that workers are copies of, and `warm`
    is called there. `finish` runs in this process: what it is given, the result and its record batch, are views of
    shared memory, and it must copy what it returns. Without it items have memory of their own.

    All that is in flight lies in one piece of shared memory of the share's size. A batch that does not fit is
    worked on in this process, when its turn has come. `file_paths` are the files that row ids count, for messages.

    Use it in a `with` block, or call `close()`: the processes end there. They stay from epoch to epoch.
    """
    if num_workers < 1:
        raise ValueError(f"needs at least one worker, not {num_workers}")
    return InWorkers(source, Work(function, warm), num_workers, share, finish, file_paths, patience)


class InWorkers(Generic[T]):
    """The stream that `in_workers` gives.

    Its place is the source's after the last item handed out, however far the workers have come.
    """

    def __init__(
        self,
        source: Stream[pa.RecordBatch],
        work: Work,
        num_workers: int,
        share: Share,
        finish: Finish | None,
        file_paths: Sequence[str],
        patience: Patience,
    ) -> None:
        self._source = source
        self._finish = finish
        self._start_crew = partial(Crew, work, num_workers, share, patience, file_paths)
        self._crew: Crew | None = None
        self._batches: Iterator[pa.RecordBatch] | None = None
        """The source being read; None before the first item, and after the last."""
        self._place: State = {}
        self._waiting: deque[tuple[Parcel, State]] = deque()
        self._in_hand: tuple[pa.RecordBatch, State] | None = None
        """A batch that was read and has no room yet."""
        self._at_end = False
        self._failure: Exception | None = None
        """What the source raised; told when all items before it are given out."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers; none before the first item."""
        return [] if self._crew is None else self._crew.pids

    def start(self) -> None:
        """Start the workers now rather than with the first item; where they run, nothing happens."""
        self._crew = self._crew or self._start_crew()

    def __iter__(self) -> Iterator[T]:
        """Items from the present place on. An error of the source or of the function is raised in its turn."""
        while not isinstance(item := self._next_item(), _End):
            yield item
            del item

    def state_dict(self) -> State:
        """The place after the last item handed out."""
        return self._source.state_dict() if self._batches is None else self._place

    def load_state_dict(self, state: State) -> None:
        """Drop what was made ahead and go to a place; the workers stay."""
        self._stop_reading()
        self._source.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        """Drop what was made ahead and go to the start of an epoch; the workers stay."""
        self._stop_reading()
        self._source.set_epoch(epoch)

    def close(self) -> None:
        """End the workers, and put the source back to the last item handed out."""
        self._go_back()
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def _next_item(self) -> T | _End:
        try:
            return self._advance()
        except BaseException as error:
            if isinstance(error, WorkerError) or not isinstance(error, Exception):
                # Workers that are in doubt are not used again; the next iteration starts new ones.
                self.close()
            self._go_back()
            raise

    def _advance(self) -> T | _End:
        if self._batches is None:
            self._place = self._source.state_dict()
            self._batches = iter(self._source)
        self._hand_out()
        if self._waiting:
            item, self._place = self._receive()
        elif self._in_hand is not None:
            item, self._place = self._do_here(*self._in_hand)
        else:
            return self._end()
        return item

    def _hand_out(self) -> None:
        """Give batches to workers, as many as they and the memory can take."""
        if self._crew is not None:
            self._crew.hear(0)
        while self._read_one():
            assert self._in_hand is not None
            batch, place = self._in_hand
            self.start()
            assert self._crew is not None
            parcel = self._crew.take(batch)
            if parcel is not None:
                self._waiting.append((parcel, place))
                self._in_hand = None
            elif self._waiting or self._crew.idle:
                return
            else:
                # Only batches that nobody wants any more are in the way.
                self._crew.hear()

    def _read_one(self) -> bool:
        """Have a batch in hand, unless there are no more."""
        if self._in_hand is None and not self._at_end:
            assert self._batches is not None
            try:
                self._in_hand = next(self._batches), self._source.state_dict()
            except StopIteration:
                self._at_end = True
            except Exception as error:  # raised again when all items before it are given out
                self._at_end, self._failure = True, error
        return self._in_hand is not None

    def _receive(self) -> tuple[T, State]:
        assert self._crew is not None
        parcel, place = self._waiting[0]
        while parcel.reply is None:
            self._crew.hear()
        self._waiting.popleft()
        return self._crew.open(parcel, self._finish), place

    def _do_here(self, batch: pa.RecordBatch, place: State) -> tuple[T, State]:
        assert self._crew is not None
        self._in_hand = None
        self._crew.tell_no_room()
        return self._crew.do_here(batch, self._finish), place

    def _end(self) -> _End:
        if self._failure is not None:
            raise self._failure
        self._stop_reading()
        return _END

    def _go_back(self) -> None:
        """Put the source back to the last item handed out, if it is ahead."""
        if self._batches is not None:
            self._stop_reading()
            self._source.load_state_dict(self._place)

    def _stop_reading(self) -> None:
        """Forget what was read and made ahead."""
        if (close := getattr(self._batches, "close", None)) is not None:
            close()
        while self._waiting:
            parcel, _ = self._waiting.popleft()
            if self._crew is not None:
                self._crew.drop(parcel)
        self._batches = self._in_hand = self._failure = None
        self._at_end = False
