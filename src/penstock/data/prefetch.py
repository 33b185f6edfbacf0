"""Background threads that work ahead, as far as a number of bytes allows."""

import operator
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeVar

import pyarrow as pa

from penstock.data.cut import Stage
from penstock.readers.stream import RecordStream, Stream
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


class Prefetch(AbstractContextManager["Prefetch[T]"], Generic[T]):
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
        self.queue: SimpleQueue[_Made[T] | _Ended] = SimpleQueue()
        self._state: State = {}
        self._running: Generator[T] | None = None

    def __iter__(self) -> Iterator[T]:
        """The items from the position on; a loop that was left goes on with what its thread has made."""
        if self._running is None:
            self._state = self.source.state_dict()
            self._running = self._items()
        return self._running

    def _items(self) -> Generator[T]:
        """An error of the source is raised here, with its traceback."""
        share, leased_bytes = self._share, 0
        stopping = threading.Event()
        thread = threading.Thread(
            target=self._work, args=(stopping.is_set,), name="penstock-prefetch", daemon=True
        )
        thread.start()
        try:
            while isinstance(made := self.queue.get(), _Made):
                self._state, leased_bytes = made.state, made.leased_bytes
                if not self._hold_handed_out:
                    share.release(leased_bytes)
                    leased_bytes = 0
                yield made.item
                del made
                share.release(leased_bytes)
                leased_bytes = 0
            self._state = self._state if made.state is None else made.state
            if made.error is not None:
                raise made.error
        finally:
            stopping.set()
            share.wake()
            thread.join()
            while not self.queue.empty():
                if isinstance(left := self.queue.get(), _Made):
                    leased_bytes += left.leased_bytes
            share.release(leased_bytes)
            self._running = None
            self.source.load_state_dict(self._state)

    def _work(self, is_stopping: Callable[[], bool]) -> None:
        """What the thread does: always ends with `_Ended`, so that nobody waits for ever."""
        try:
            with closing(iter(self.source)) as items:  # type: ignore[type-var]
                for item in items:
                    # At least one byte, so that items of no size do not queue without end.
                    leased_bytes = max(1, min(self._num_bytes(item), self._share.limit_bytes))
                    if is_stopping() or not self._share.acquire(leased_bytes, is_stopping):
                        break
                    self.queue.put(_Made(item, self.source.state_dict(), leased_bytes))
                    del item
            self.queue.put(_Ended(self.source.state_dict()))
        except BaseException as error:  # raised again where the items are used
            self.queue.put(_Ended(None, error))

    def state_dict(self) -> State:
        return self.source.state_dict() if self._running is None else self._state

    def load_state_dict(self, state: State) -> None:
        self._stop()
        self.source.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        self._stop()
        self.source.set_epoch(epoch)

    def _stop(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    def close(self, *_: object) -> None:
        """End the thread, put the source back to the last item handed out, and close it where it can be closed."""
        self._stop()
        if (close := getattr(self.source, "close", None)) is not None:
            close()

    __exit__ = close


class ReadAhead(Stage):
    """The batches of the source, made by a thread of their own: decoding releases the interpreter's lock, and so goes
    on beside parsing.

    The bytes of the batches that wait, and of the one that was given out last, are leased from the share.
    """

    def __init__(self, source: RecordStream, share: Share) -> None:
        super().__init__(source)
        self._ahead: Prefetch[pa.RecordBatch] = Prefetch(source, share, hold_handed_out=True)
        source.num_waiting = self._ahead.queue.qsize

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._ahead.close()  # of a loop that was left
        self._source.position = self.position
        with closing(iter(self._ahead)) as batches:  # type: ignore[type-var]
            for batch in batches:
                self.position = self.position.at(self.position.row + batch.num_rows)
                yield batch
                del batch

    def close(self) -> None:
        self._ahead.close()
