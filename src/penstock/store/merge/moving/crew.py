"""Who does the tasks of a merge: threads of this process, or several processes."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from penstock.store.merge.layouts.targets import PartChecksums
from penstock.store.merge.moving.tasks import Kind, Task, Work
from penstock.store.merge.moving.workers import Worker

_COPYING_THREADS = 2
"""One takes checksums while the other waits for its files. A shuffle fills all its memory with one task at a time, and
what writes Parquet and Arrow files takes more memory in two threads, but no less time."""

Done = tuple[Task, PartChecksums]


class Crew:
    """Does tasks, some at once; what is done depends on nobody else, so that their order does not matter."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._workers: list[Worker] = []
        self._free: SimpleQueue[Worker] = SimpleQueue()

    def run(self, tasks: Sequence[Task]) -> Iterator[Done]:
        """Do tasks, and give each in turn when it is done; the first error ends all."""
        num_processes = min(self._work.plan.options.workers, len(tasks))
        if num_processes > 1:
            self._start(num_processes)
            return _run_at_once(self._run_in_worker, tasks, num_processes)
        if tasks and tasks[0].kind == Kind.copy and not self._work.plan.options.has_part_files:
            return _run_at_once(self._run_here, tasks, _COPYING_THREADS)
        return map(self._run_here, tasks)

    def _start(self, num_processes: int) -> None:
        while len(self._workers) < num_processes:
            self._workers.append(Worker(self._work))
            self._free.put(self._workers[-1])

    def _run_here(self, task: Task) -> Done:
        return task, self._work.run(task)

    def _run_in_worker(self, task: Task) -> Done:
        worker = self._free.get()
        try:
            return task, worker.run(task)
        finally:
            self._free.put(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes, whatever they are doing."""
        for worker in self._workers:
            worker.end()


def _run_at_once(run: Callable[[Task], Done], tasks: Sequence[Task], num_threads: int) -> Iterator[Done]:
    """Give what is done in the order of the tasks; a few are begun ahead, and no more until somebody has taken it."""
    running: deque[Future[Done]] = deque()
    with ThreadPoolExecutor(num_threads, "penstock-merge") as threads:
        try:
            for task in tasks:
                if len(running) == 2 * num_threads:
                    yield running.popleft().result()
                running.append(threads.submit(run, task))
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
