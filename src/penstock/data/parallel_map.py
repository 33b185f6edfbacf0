"""Record batches -> results of a function that worker processes run, in the order of the source.

For a user's own Python. Features of ours are faster without the copies that other processes need (docs/data.md).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NoReturn, Self, TypeVar

import pyarrow as pa

from penstock.readers.stream import ROW_COLUMN, Stream, describe_rows
from penstock.runtime.budget import Share
from penstock.runtime.worker_process import Failure, Send, WorkerError, WorkerStack, innermost
from penstock.runtime.workers import Supervisor, WorkerPool
from penstock.runtime.world import State

R = TypeVar("R")
BYTES_PER_BATCH = 2
"""Memory of a batch in flight, in batches: the batch and its result."""


class ParallelMap(Generic[R]):
    """Gives (function(batch), batch) for each batch; state_dict() is the source's after the last pair given out.

    The function must be picklable and pure: the batch of a worker that died is done again, once. An error of the
    function or of the source is raised in its turn. `file_paths` are those that row ids count, for messages. Use it
    in a `with` block, or call `close()`: the processes stay from epoch to epoch and end there.
    """

    def __init__(
        self,
        source: Stream[pa.RecordBatch],
        function: Callable[[pa.RecordBatch], R],
        num_workers: int,
        share: Share,
        file_paths: Sequence[str] = (),
    ) -> None:
        self._source, self._function, self._num_workers = source, function, num_workers
        self._share, self._file_paths = share, file_paths
        self._pool: WorkerPool[_Task, R | Failure] | None = None
        self._running: Iterator[tuple[R, _Task]] | None = None
        self._state: State = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        return [] if self._pool is None else self._pool.pids

    def __iter__(self) -> Iterator[tuple[R, pa.RecordBatch]]:
        self._stop()
        self._state = self._source.state_dict()
        running = self._running = self._results()
        try:
            for result, task in running:
                self._state = task.state
                yield result, task.batch
                del result, task
            self._state = self._source.state_dict()
        finally:
            if self._running is running:
                self._stop()

    def state_dict(self) -> State:
        return self._source.state_dict() if self._running is None else self._state

    def load_state_dict(self, state: State) -> None:
        self._stop()
        self._source.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        self._stop()
        self._source.set_epoch(epoch)

    def close(self) -> None:
        self._stop()
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _stop(self) -> None:
        if self._running is None:
            return
        running, self._running = self._running, None
        running.close()  # type: ignore[attr-defined]  # a generator
        self._source.load_state_dict(self._state)

    def _results(self) -> Iterator[tuple[R, "_Task"]]:
        if self._pool is None:
            work = partial(_work, self._function)
            self._pool = WorkerPool(work, self._num_workers, _BatchSupervisor(self._file_paths))
        failures: list[Exception] = []
        held: dict[int, int] = {}  # bytes leased for each task in flight
        next_bytes = 0

        def tasks() -> Iterator[_Task]:
            nonlocal next_bytes
            with closing(iter(self._source)) as batches:  # type: ignore[type-var]
                try:
                    for batch in batches:
                        task = _Task(batch, self._source.state_dict())
                        next_bytes = BYTES_PER_BATCH * batch.nbytes
                        # One that is larger than what is left is there already: refusing it would save nothing.
                        held[id(task)] = min(next_bytes, self._share.limit_bytes - self._share.held_bytes)
                        self._share.acquire(held[id(task)])
                        yield task
                except Exception as error:  # raised again when all results before it are given out
                    failures.append(error)

        def has_memory() -> bool:
            free_bytes = self._share.limit_bytes - self._share.held_bytes
            return not held or next_bytes <= free_bytes

        given = tasks()
        try:
            with closing(self._pool.run(given, ordered=True, has_memory=has_memory)) as done:  # type: ignore[type-var]
                for task, result in done:
                    if isinstance(result, Failure):
                        result.raise_here()
                    yield result, task
                    self._share.release(held.pop(id(task)))
            if failures:
                raise failures[0]
        finally:
            given.close()  # type: ignore[attr-defined]  # a generator; the source is not read any more
            self._share.release(sum(held.values()))


@dataclass(frozen=True, slots=True)
class _Task:
    """A batch, and the state of the source after it. A worker receives the batch alone."""

    batch: pa.RecordBatch
    state: State

    def __reduce__(self) -> tuple[Any, ...]:
        # As a stream of Arrow: a pickled slice would carry the whole batch that it is cut from.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.batch.schema) as writer:
            writer.write_batch(self.batch)
        return _received_batch, (sink.getvalue().to_pybytes(),)


def _received_batch(content: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(content).read_next_batch()


def _work(function: Callable[[pa.RecordBatch], Any], batch: Any, _: Send) -> Any:
    try:
        return function(batch)
    except Exception as error:  # of a user's code; raised in the parent in its turn
        return Failure.of(error)


class _BatchSupervisor(Supervisor[_Task]):
    memory_cure = "lower data_config.num_workers or data_config.batch_size, or raise memory.limit"
    other_cure = "data_config.num_workers: 0 runs the same in the training process"

    def __init__(self, file_paths: Sequence[str]) -> None:
        self._file_paths = file_paths

    def describe(self, task: _Task) -> str:
        if ROW_COLUMN not in task.batch.schema.names or not task.batch.num_rows:
            return f"a batch of {task.batch.num_rows} rows"
        return describe_rows(task.batch.column(ROW_COLUMN).to_numpy(), self._file_paths)

    def hangs(self, task: _Task, name: str, seconds: float, longest_seconds: float, stack: str) -> NoReturn:
        usual = f"; until now a batch took {longest_seconds:.3g} s at most" if longest_seconds else ""
        where = f"it is in {line}" if (line := innermost(stack)) else "it does not answer"
        raise WorkerError(
            f"{name} has been at {self.describe(task)} for {seconds:.0f} s{usual}; {where}. Look at what it waits "
            f"for; {self.other_cure}"
        ) from (WorkerStack(stack) if stack else None)
