"""Background threads that work ahead, as far as a number of bytes allows."""

import operator
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, Self, TypeVar

import pyarrow as pa

from penstock.data.stage import Stage
from penstock.readers.stream import RecordStream, Stream, StreamPosition
from penstock.runtime.budget import Share
from penstock.runtime.world import State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Made(Generic[T]):
    item: T
    state: State
    leased_bytes: int


@dataclass(frozen=True, slots=True)
class _Ended:
    state: State | None
    error: BaseException | None = None


class Prefetch(Generic[T]):
    """The items of the source, made by a background thread while earlier ones are in use.

    Items wait in a queue whose bytes are leased from the share. The item that the thread is making and the
    one that was handed out last are not in the queue: they belong to the source and to the consumer; with
    `hold_handed_out`, the latter stays leased until the next one is asked for. An item that is larger than the
    share passes alone, when the queue is empty: it exists already, so refusing it would save nothing, and a
    prefetch should never fail a run that works without it.

    Its position is that of the last item handed out, however far the thread has come. Use it in a `with` block, or
    call `close()`: the thread ends there.
    """

    def __init__(
        self,
        source: Stream[T],
        share: Share,
        num_bytes: Callable[[T], int] = operator.attrgetter("nbytes"),
        hold_handed_out: bool = False,
    ) -> None:
        self.source = source
        self._share, self._num_bytes, self._hold_handed_out = share, num_bytes, hold_handed_out
        self._held_bytes = 0
        self._queue: SimpleQueue[_Made[T] | _Ended] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._state: State = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        """An error of the source is raised here, with its traceback."""
        self._release_held()  # of a loop that was left
        if self._thread is None:
            self._state = self.source.state_dict()
            self._stopping.clear()
            self._thread = threading.Thread(target=self._work, name="penstock-prefetch", daemon=True)
            self._thread.start()
        while isinstance(made := self._queue.get(), _Made):
            if self._hold_handed_out:
                self._held_bytes = made.leased_bytes
            else:
                self._share.release(made.leased_bytes)
            self._state = made.state
            yield made.item
            del made
            self._release_held()
        self._stop()
        if made.state is not None:
            self._state = made.state
        if made.error is not None:
            self.source.load_state_dict(self._state)
            raise made.error

    def num_waiting(self) -> int:
        return self._queue.qsize()

    def state_dict(self) -> State:
        return self.source.state_dict() if self._thread is None else self._state

    def load_state_dict(self, state: State) -> None:
        self._stop()
        self.source.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        self._stop()
        self.source.set_epoch(epoch)

    def close(self) -> None:
        """End the thread, put the source back to the last item handed out, and close it where it can be closed."""
        if self._thread is not None:
            self._stop()
            self.source.load_state_dict(self._state)
        if (close := getattr(self.source, "close", None)) is not None:
            close()

    def _stop(self) -> None:
        if self._thread is None:
            return
        self._stopping.set()
        self._share.wake()
        self._thread.join()
        self._thread = None
        self._release_held()
        while not self._queue.empty():
            left = self._queue.get()
            if isinstance(left, _Made):
                self._share.release(left.leased_bytes)

    def _release_held(self) -> None:
        self._share.release(self._held_bytes)
        self._held_bytes = 0

    def _work(self) -> None:
        """What the thread does: always ends with `_Ended`, so that nobody waits for ever."""
        try:
            items = iter(self.source)
            try:
                for item in items:
                    # At least one byte, so that items of no size do not queue without end.
                    leased_bytes = max(1, min(self._num_bytes(item), self._share.limit_bytes))
                    if self._stopping.is_set() or not self._share.acquire(
                        leased_bytes, self._stopping.is_set
                    ):
                        break
                    self._queue.put(_Made(item, self.source.state_dict(), leased_bytes))
                    del item
            finally:
                if (close := getattr(items, "close", None)) is not None:
                    close()
            self._queue.put(_Ended(self.source.state_dict()))
        except BaseException as error:  # raised again where the items are used
            self._queue.put(_Ended(None, error))


class ReadAhead(Stage):
    """The batches of the source, made by a thread of their own: decoding releases the interpreter's lock, and so goes
    on beside parsing.

    The bytes of the batches that wait, and of the one that was given out last, are leased from the share.
    """

    def __init__(self, source: RecordStream, share: Share) -> None:
        super().__init__(source)
        self._share = share
        self._running: Prefetch[pa.RecordBatch] | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._stop()
        self._source.seek(self._position)
        running = self._running = Prefetch(self._source, self._share, hold_handed_out=True)
        self._source.num_waiting = running.num_waiting
        try:
            for batch in running:
                self._position = self._position.at(self._position.row + batch.num_rows)
                yield batch
        finally:
            self._source.num_waiting = None
            running.close()

    def seek(self, position: StreamPosition) -> None:
        self._stop()
        super().seek(position)

    def close(self) -> None:
        self._stop()
        super().close()

    def _stop(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None
