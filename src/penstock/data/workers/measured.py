"""Work on batches in this process at first, and in workers once measuring says that they help.

The rule: of the last batches, the function took more than twice what has to stay in this process (reading and
finishing), and more than twice what the consumer let pass before it asked for the next. Whoever asks slowly would
not get more from workers, and nor would one who has batches waiting.
"""

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from penstock.data.workers.stage import InWorkers
from penstock.readers.stream import Stream
from penstock.runtime.budget import Share
from penstock.runtime.state import State
from penstock.runtime.worker_process import NotLoadable

T = TypeVar("T")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rule:
    """When measuring is enough, and what must come out of it for workers to be started."""

    first_batches: int = 8
    """Not counted: for them, much is loaded or compiled that later ones find."""

    num_batches: int = 64
    most_seconds: float = 10.0
    """Decide after this time, even if there were fewer batches."""

    least_batches: int = 4
    times: float = 2.0


DEFAULT_RULE = Rule()


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one batch: in the function, in this process beside it, and until the next was asked for."""

    function: float
    beside: float
    consumer: float
    awaited: bool = True
    """Whether nothing else was there to be used when this batch was ready."""


@dataclass(slots=True)
class Spent:
    """Seconds of all batches that this process made: in the function, and beside it."""

    function: float = 0.0
    beside: float = 0.0


class Judge:
    """Sees how long batches take, and says how many workers would help."""

    def __init__(self, rule: Rule, most_workers: int) -> None:
        self._rule = rule
        self._most_workers = most_workers
        self._last: deque[Timing] = deque(maxlen=max(1, rule.num_batches // 2))
        self._num_batches, self._seconds = -rule.first_batches, 0.0

    def see(self, timing: Timing) -> int | None:
        """Count a batch. The number of workers to have from now on, 0 for none; None: not decided yet."""
        self._num_batches += 1
        if self._num_batches <= 0:
            return None
        self._last.append(timing)
        self._seconds += timing.function + timing.beside + timing.consumer
        enough = self._num_batches >= self._rule.num_batches or self._seconds >= self._rule.most_seconds
        return self._verdict() if enough and self._num_batches >= self._rule.least_batches else None

    def _verdict(self) -> int | None:
        """None: workers would make batches faster, but nobody has had to wait for one yet."""
        # The median: a batch for which something is compiled takes as long as thousands of others.
        function = statistics.median(timing.function for timing in self._last)
        beside = statistics.fmean(timing.beside for timing in self._last)
        consumer = statistics.fmean(timing.consumer for timing in self._last)
        slowest = max(beside, consumer, 1e-9)
        helps = function > self._rule.times * slowest
        if helps and 2 * sum(timing.awaited for timing in self._last) <= len(self._last):
            return None
        num_workers = min(self._most_workers, math.ceil(function / slowest)) if helps else 0
        _logger.info(
            "of a batch's time parsing takes %.0f ms, reading and packing %.0f ms, the consumer %.0f ms: %s",
            *(1000 * seconds for seconds in (function, beside, consumer)),
            f"going on with {num_workers} worker processes"
            if num_workers
            else "worker processes would not help",
        )
        return num_workers


def when_it_helps(
    source: Stream[pa.RecordBatch],
    function: Callable[[pa.RecordBatch], Any],
    finish: Callable[[Any, pa.RecordBatch], T],
    start: Callable[[int], InWorkers[T]],
    most_workers: int,
    rule: Rule = DEFAULT_RULE,
    queue: Share | None = None,
) -> "Measured[T]":
    """The same items whoever makes them: this process, or the workers that `start` makes over the same source.

    `queue` is the share of the queue where items wait to be used. It asks without a pause until it is full, so that
    what it holds, and not when it asks, tells whether anybody waits for items.
    """
    return Measured(
        source, function, finish, start, Judge(rule, most_workers) if most_workers else None, queue
    )


class Measured(Generic[T]):
    """The stream that `when_it_helps` gives; it decides once, in the middle of an epoch or later."""

    def __init__(
        self,
        source: Stream[pa.RecordBatch],
        function: Callable[[pa.RecordBatch], Any],
        finish: Callable[[Any, pa.RecordBatch], T],
        start: Callable[[int], InWorkers[T]],
        judge: Judge | None = None,
        queue: Share | None = None,
    ) -> None:
        self._source, self._function, self._finish, self._start = source, function, finish, start
        self._judge = judge
        """None: decided."""
        self._queue = queue
        self._workers: InWorkers[T] | None = None
        self.spent = Spent()

    def __iter__(self) -> Iterator[T]:
        """Items from the present place on."""
        if self._workers is None:
            yield from self._made_here()
        if self._workers is not None:
            yield from self._workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers, if there are any."""
        return [] if self._workers is None else self._workers.pids

    def state_dict(self) -> State:
        """The place after the last item given out."""
        return self._stream.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Go to a place."""
        self._stream.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self._stream.set_epoch(epoch)

    def close(self) -> None:
        """End the workers, if there are any."""
        if self._workers is not None:
            self._workers.close()

    @property
    def _stream(self) -> Stream[Any]:
        return self._source if self._workers is None else self._workers

    def _made_here(self) -> Iterator[T]:
        batches = iter(self._source)
        try:
            ended_at = time.perf_counter()
            for batch in batches:
                read_at = time.perf_counter()
                result = self._function(batch)
                parsed_at = time.perf_counter()
                item = self._finish(result, batch)
                del batch, result
                awaited = self._queue is None or self._queue.held_bytes == 0
                finished_at = time.perf_counter()
                yield item
                del item
                asked_at = time.perf_counter()
                beside = (read_at - ended_at) + (finished_at - parsed_at)
                ended_at = asked_at
                self.spent.function += parsed_at - read_at
                self.spent.beside += beside
                if self._decide(Timing(parsed_at - read_at, beside, asked_at - finished_at, awaited)):
                    return
        finally:
            if (close := getattr(batches, "close", None)) is not None:
                close()

    def _decide(self, timing: Timing) -> bool:
        """Whether workers go on from here."""
        num_workers = None if self._judge is None else self._judge.see(timing)
        if num_workers is None:
            return False
        self._judge = None
        if num_workers:
            self._workers = self._started(num_workers)
        return self._workers is not None

    def _started(self, num_workers: int) -> InWorkers[T] | None:
        """Workers that run; None, and a line in the log, where nobody asked for them and they cannot do the work."""
        workers = self._start(num_workers)
        try:
            workers.start()
        except NotLoadable as error:
            _logger.warning("going on without worker processes: %s", error)
            return None
        return workers
