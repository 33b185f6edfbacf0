"""One door to the three ways to work on batches: here, in workers, or in workers if that helps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from penstock.data.workers.measured import DEFAULT_RULE, Measured, Rule, when_it_helps
from penstock.data.workers.patience import DEFAULT_PATIENCE, Patience
from penstock.data.workers.stage import InWorkers, in_workers
from penstock.readers.stream import Stream
from penstock.runtime.budget import Share

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers there may be, and the memory they share with this process."""

    count: int
    share: Share
    measured: bool = False
    """Start them only if measuring the first batches says that they help."""

    patience: Patience = DEFAULT_PATIENCE
    rule: Rule = DEFAULT_RULE
    queue: Share | None = None
    """Where batches wait to be used, if there is such a place: while it holds some, nobody waits for workers."""


def each_batch(
    source: Stream[pa.RecordBatch],
    function: Callable[[pa.RecordBatch], R],
    finish: Callable[[R, pa.RecordBatch], T],
    workers: Workers | None = None,
    *,
    warm: Callable[[], None] | None = None,
    file_paths: Sequence[str] = (),
) -> InWorkers[T] | Measured[T]:
    """What function and finish make of each batch: the same items and places for any number of workers."""

    def start(count: int) -> InWorkers[T]:
        assert workers is not None
        return in_workers(
            source,
            function,
            count,
            workers.share,
            finish=finish,
            warm=warm,
            file_paths=file_paths,
            patience=workers.patience,
        )

    if workers is None or not workers.count:
        return when_it_helps(source, function, finish, start, most_workers=0)
    if workers.measured:
        return when_it_helps(source, function, finish, start, workers.count, workers.rule, workers.queue)
    return start(workers.count)
