"""The one worker pool: threads where kernels release the GIL, processes for a user's own Python.

`map_in_threads` is enough for work of our own. `WorkerPool` runs a function in processes that a user's code may block,
crash or fill with memory. Each worker has one task in flight. A task must be idempotent: when its worker dies, another
worker does it again. What the owner of a pool wants to know or decide is in its `Supervisor`.
"""

import atexit
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from typing import Any, Generic, Self, TypeVar

import psutil

from penstock.config.sizes import format_size
from penstock.runtime.memory import process_bytes, tree_bytes
from penstock.runtime.worker_process import (
    STACK_SIGNAL,
    Send,
    WorkerError,
    WorkerStack,
    innermost,
    not_loadable,
    start_process,
)

T = TypeVar("T")
R = TypeVar("R")

TICK_SECONDS = 0.5
_END_SECONDS = 5.0
_STACK_SECONDS = 1.0
# A program that a user's code has left behind may keep the pipe of printed lines open: wait no longer for its end.
_PRINT_SECONDS = 1.0
_HANG_FACTOR = 10

logger = logging.getLogger(__name__)


def map_in_threads(function: Callable[[T], R], tasks: Iterable[T], num_threads: int) -> Iterator[R]:
    """Results in the order of the tasks; at most two tasks per thread are begun ahead."""
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(num_threads, "penstock") as threads:
        try:
            for task in tasks:
                if len(running) == 2 * num_threads:
                    yield running.popleft().result()
                running.append(threads.submit(function, task))
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


@dataclass(frozen=True, slots=True)
class PoolSize:
    """Begin with `start` workers; add more while they fit into `limit_bytes`, `max` at most."""

    start: int
    max: int
    limit_bytes: int = sys.maxsize
    setting: str = "num_workers"
    """What the user calls it, for messages."""


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    name: str
    exit_code: int
    times: int
    """How many workers have died with this task."""
    memory_bytes: int | None
    """As it was last seen."""
    stack: str

    @property
    def how(self) -> str:
        """As in "a worker process ..."."""
        if self.exit_code >= 0:
            return f"ended itself with exit code {self.exit_code}"
        try:
            return f"was killed by {signal.Signals(-self.exit_code).name}"
        except ValueError:
            return f"was killed by signal {-self.exit_code}"

    @property
    def cause(self) -> WorkerStack | None:
        return WorkerStack(self.stack) if self.stack else None


class Supervisor(Generic[T]):
    """Receives the events of a pool and decides for it; these defaults are for tasks that only return a result."""

    memory_cure = "use fewer workers, or raise memory.limit"
    other_cure = "without workers, the same runs in this process"

    def describe(self, task: T) -> str:
        return str(task)

    def started(self, task: T) -> None:
        """A worker begins a task."""

    def received(self, task: T, event: Any) -> bool:
        """A task has sent an event; true where its worker now takes about as much memory as it ever will."""
        return False

    def tick(self) -> None:
        """Called at least every half second; an error that it raises ends the run."""

    def takes_too_much(self) -> bool:
        return False

    def died(self, task: T, end: WorkerEnd) -> T:
        """The task that is to be done instead; raises to end the run."""
        text = f"{end.name} {end.how} while it had {self.describe(task)}"
        if end.memory_bytes is not None:
            text += f"; its memory was last seen at {format_size(end.memory_bytes)}"
        if end.times == 1:
            logger.warning("%s; it is tried once more", text)
            return task
        cure = self.other_cure
        if end.exit_code == -signal.SIGKILL:
            cure = f"Most often memory has run out: {self.memory_cure}"
        raise WorkerError(f"{text}, for the second time. {cure}") from end.cause

    def hangs(self, task: T, name: str, seconds: float, longest_seconds: float, stack: str) -> None:
        """A worker has sent nothing for far longer than any before; called again whenever the time has doubled."""
        usual = f"; until now it was {longest_seconds:.1f} s at most" if longest_seconds else ""
        where = f"it is in {line}" if (line := innermost(stack)) else "it does not answer"
        logger.warning("%s has been at %s for %.0f s%s; %s", name, self.describe(task), seconds, usual, where)

    def printed(self, line: str) -> None:
        """A line that a worker has printed."""
        sys.stderr.write(f"{line}\n")


@dataclass(slots=True)
class _Assignment(Generic[T]):
    index: int
    task: T
    deaths: int = 0


@dataclass(slots=True)
class _Worker(Generic[T]):
    number: int
    process: Any
    connection: Any
    stack_file: int
    assignment: _Assignment[T] | None = None
    is_ready: bool = False
    """Whether it answers signals; one that is just starting would end."""
    silent_seconds: float = 0.0
    reported_seconds: float = 0.0
    is_settled: bool = False
    """Whether its memory says what a worker takes."""
    memory_bytes: int | None = None

    def __str__(self) -> str:
        return f"worker {self.number} (pid {self.process.pid})"

    def stack(self, ask: bool) -> str:
        """What it wrote when it crashed, or writes now when it is asked."""
        if ask and self.is_ready:
            os.ftruncate(self.stack_file, 0)
            with suppress(OSError):
                os.kill(self.process.pid, STACK_SIGNAL)
            deadline = time.monotonic() + _STACK_SECONDS
            while not os.fstat(self.stack_file).st_size and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.05)  # the rest of what it writes
        written = os.pread(self.stack_file, os.fstat(self.stack_file).st_size, 0)
        return written.decode(errors="replace").strip("\0")


class WorkerPool(Generic[T, R]):
    """Processes that call `function(task, send)`; close it, or use it in a `with` block."""

    def __init__(
        self,
        function: Callable[[T, Send], R],
        size: PoolSize | int,
        supervisor: Supervisor[T] | None = None,
        *,
        hang_seconds: float = 60.0,
    ) -> None:
        self.size = PoolSize(size, size) if isinstance(size, int) else size
        """As it is now: where memory was short, it has a lower maximum than at first."""
        self.max_running = 0
        """The most workers that ever ran at once."""
        self._supervisor = Supervisor[T]() if supervisor is None else supervisor
        try:
            self._function = pickle.dumps(function, protocol=5)
        except Exception as error:  # any class may refuse in its own way
            raise not_loadable(f"{type(error).__name__}: {error}", self._supervisor.other_cure) from error
        self._workers: list[_Worker[T]] = []
        self._source: Iterator[_Assignment[T]] = iter(())
        self._pending: deque[_Assignment[T]] = deque()
        self._hang_seconds, self._longest_seconds, self._measured_at = hang_seconds, 0.0, 0.0
        reading, self._stdout = os.pipe()
        self._printer = threading.Thread(target=self._print, args=(reading,), daemon=True)
        self._printer.start()
        # An owner that never closes its pool must not keep the interpreter from ending.
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers]

    def run(
        self, tasks: Iterable[T], ordered: bool = False, has_memory: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[T, R]]:
        """Do all tasks; gives each with its result, as they come or in order. Tasks are taken when a worker is free.

        While `has_memory` says no, no task is taken; it must say yes when no task is in flight.

        The first error of a task is raised here. Whoever stops early ends the workers that are still busy.
        """
        self._source = (_Assignment(index, task) for index, task in enumerate(tasks))
        self._pending.clear()
        done: dict[int, tuple[T, R]] = {}
        next_index = 0
        try:
            self._start(self.size.start - len(self._workers))
            while True:
                self._hand_out(next_index + 2 * self.size.max if ordered else sys.maxsize, has_memory)
                if done and (not ordered or next_index in done):
                    yield done.pop(next_index if ordered else next(iter(done)))
                    next_index += 1
                    continue
                busy = [worker for worker in self._workers if worker.assignment is not None]
                if not busy:
                    return
                done.update(self._wait(busy))
                if len(self._workers) > 1 and self._supervisor.takes_too_much():
                    if (assignment := self._workers[-1].assignment) is not None:
                        self._pending.appendleft(assignment)
                    self._end(self._workers[-1:])
                    self._fix_size("more took too much")
                else:
                    self._supervisor.tick()
                    self._grow()
        finally:
            self._end([worker for worker in self._workers if worker.assignment is not None])

    def close(self) -> None:
        atexit.unregister(self.close)
        self._end([*self._workers])
        if self._stdout >= 0:
            os.close(self._stdout)
            self._stdout = -1
            self._printer.join(_PRINT_SECONDS)

    def _start(self, count: int) -> None:
        numbers = {*range(len(self._workers) + count)} - {worker.number for worker in self._workers}
        for number in sorted(numbers)[: max(0, count)]:
            worker = _Worker[T](number, *start_process(self._stdout))
            self._workers.append(worker)
            with suppress(OSError):  # whoever waits for it notices its end
                worker.connection.send_bytes(self._function)
        self.max_running = max(self.max_running, len(self._workers))

    def _end(self, workers: list[_Worker[T]]) -> int:
        """Ends workers and all that they started; gives the exit code of the last."""
        exit_code = 0
        for worker in workers:
            worker.connection.close()  # so that all of them end at the same time
        for worker in workers:
            self._workers.remove(worker)
            worker.process.join(_END_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            exit_code = worker.process.exitcode
            worker.process.close()
            os.close(worker.stack_file)
        return exit_code

    def _fill(self, count: int) -> int:
        while len(self._pending) < count and (assignment := next(self._source, None)) is not None:
            self._pending.append(assignment)
        return len(self._pending)

    def _hand_out(self, end_index: int, has_memory: Callable[[], bool]) -> None:
        for worker in self._workers:
            if worker.assignment is not None or not (self._pending or has_memory()):
                continue
            if self._fill(1) and self._pending[0].index < end_index:
                worker.assignment = self._pending.popleft()
                worker.silent_seconds = worker.reported_seconds = 0.0
                self._supervisor.started(worker.assignment.task)
                with suppress(OSError):
                    worker.connection.send_bytes(pickle.dumps(worker.assignment.task, protocol=5))

    def _wait(self, busy: list[_Worker[T]]) -> dict[int, tuple[T, R]]:
        """Reads what workers have sent, notices who died or hangs; gives the tasks that are done."""
        began_at = time.monotonic()
        handles = [handle for worker in busy for handle in (worker.connection, worker.process.sentinel)]
        ready = wait_for(handles, TICK_SECONDS)
        now = time.monotonic()
        # Time in which this process did not run, such as a night asleep, is not time that a worker took.
        seconds = min(now - began_at, 2 * TICK_SECONDS)
        measures = now - self._measured_at >= TICK_SECONDS
        self._measured_at = now if measures else self._measured_at
        done: dict[int, tuple[T, R]] = {}
        for worker in busy:
            worker.silent_seconds += seconds
            if measures:
                with suppress(psutil.Error):
                    rss = psutil.Process(worker.process.pid).memory_info().rss
                    worker.memory_bytes = rss or worker.memory_bytes
            is_gone = worker.process.sentinel in ready
            if is_gone or worker.connection in ready:
                is_open = self._read(worker, done)  # what it sent last comes before its end
                is_gone |= not is_open
            if is_gone:
                self._replace(worker)
                continue
            allowed = max(
                self._hang_seconds, _HANG_FACTOR * self._longest_seconds, 2 * worker.reported_seconds
            )
            if worker.assignment is not None and worker.silent_seconds > allowed:
                worker.reported_seconds = worker.silent_seconds
                stack, task = worker.stack(ask=True), worker.assignment.task
                self._supervisor.hangs(task, str(worker), worker.silent_seconds, self._longest_seconds, stack)
        return done

    def _read(self, worker: _Worker[T], done: dict[int, tuple[T, R]]) -> bool:
        """All messages that are there; false where the connection has ended."""
        while True:
            try:
                if not worker.connection.poll():
                    return True
                kind, content = pickle.loads(worker.connection.recv_bytes())  # noqa: S301  (from our own process)
            except (EOFError, ConnectionError):
                return False
            self._longest_seconds = max(self._longest_seconds, worker.silent_seconds)
            worker.silent_seconds = worker.reported_seconds = 0.0
            if kind == "failed":
                content.raise_here()
            elif kind == "not loadable":
                stack = WorkerStack(content.stack)
                raise not_loadable(content.summary, self._supervisor.other_cure) from stack
            elif kind == "ready":
                worker.is_ready = True
                continue
            assert worker.assignment is not None
            if kind == "done":
                done[worker.assignment.index] = worker.assignment.task, content
                worker.assignment, worker.is_settled = None, True
            else:
                worker.is_settled |= self._supervisor.received(worker.assignment.task, content)

    def _replace(self, worker: _Worker[T]) -> None:
        name, stack, assignment = str(worker), worker.stack(ask=False), worker.assignment
        exit_code = self._end([worker])
        self._start(1)
        if assignment is None:  # it died after its last result
            return
        assignment.deaths += 1
        end = WorkerEnd(name, exit_code, assignment.deaths, worker.memory_bytes, stack)
        assignment.task = self._supervisor.died(assignment.task, end)
        self._pending.appendleft(assignment)

    def _grow(self) -> None:
        """More workers where there is work and memory for them, once it is known what one takes."""
        num_workers = len(self._workers)
        if num_workers >= self.size.max or not all(worker.is_settled for worker in self._workers):
            return
        if not self._fill(1):
            return
        # Pages that workers share, above all of libraries, a further one does not add; it may take a quarter more.
        largest = max(process_bytes(psutil.Process(pid))[0] for pid in self.pids)
        fitting = (self.size.limit_bytes - tree_bytes()) // max(1, largest * 5 // 4)
        # At most as many as there are, so that each step is measured.
        count = max(0, min(num_workers, self.size.max - num_workers, fitting))
        self._start(min(count, self._fill(count)))
        if not count:
            self._fix_size(f"each of them takes up to {format_size(largest)}")

    def _fix_size(self, reason: str) -> None:
        num_workers, size = len(self._workers), self.size
        if size.max != num_workers:
            logger.warning(
                "%s: going on with %d of %d worker processes, since memory.limit is %s and %s",
                *(size.setting, num_workers, size.max, format_size(size.limit_bytes), reason),
            )
        self.size = replace(size, start=min(size.start, num_workers), max=num_workers)

    def _print(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._supervisor.printed(line.rstrip("\n"))
