"""The parent's side of its workers: hand out tasks, hear from them, notice their end."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import wait

import psutil

from penstock.data.workers.arena import anonymous_file, map_arena
from penstock.data.workers.messages import Ended, Reply, Task
from penstock.data.workers.process import STACK_SIGNAL, Work
from penstock.data.workers.starting import Worker, end_template, start_workers
from penstock.runtime.worker_process import oom_kills_so_far

MOST_TASKS_PER_WORKER = 2
"""One in work and the next, so that no worker waits for its parent."""
MOST_END_SECONDS = 5.0
TICK_SECONDS = 0.5
STACK_SECONDS = 1.0
"""How often workers that are waited for are looked at."""


class WorkerEnded(Exception):
    """A worker is no more; `exit_code` is negative for a signal, None when nobody could tell.

    Without a worker it is the template that has ended.
    """

    def __init__(self, worker: Worker | None, exit_code: int | None) -> None:
        self.worker = worker
        self.exit_code = exit_code
        super().__init__(worker, exit_code)


class Pool:
    """A template and its workers, from the start to `close`."""

    def __init__(self, work: Work, num_workers: int, arena_bytes: int) -> None:
        self._oom_kills_before = oom_kills_so_far()
        self._looked_at = 0.0
        self._exit_codes: dict[int, int] = {}
        descriptor = anonymous_file(arena_bytes)
        try:
            self.arena = map_arena(descriptor, arena_bytes)
            self._template, self.workers = start_workers(work, num_workers, descriptor, arena_bytes)
        finally:
            os.close(descriptor)

    @property
    def num_tasks(self) -> int:
        """Tasks that were given and not answered."""
        return sum(len(worker.tasks) for worker in self.workers)

    @property
    def most_tasks(self) -> int:
        """How many tasks can be given and not answered."""
        return MOST_TASKS_PER_WORKER * len(self.workers)

    def free_worker(self) -> Worker | None:
        """The worker with the fewest tasks, if it can have one more."""
        worker = min(self.workers, key=lambda worker: len(worker.tasks))
        return worker if len(worker.tasks) < MOST_TASKS_PER_WORKER else None

    def give(self, worker: Worker, task: Task) -> None:
        """Hand a task to a worker."""
        if not worker.tasks:
            worker.watched_seconds = 0.0
        worker.tasks.append(task)
        # A worker that is no more is told by `hear`, after what it said last.
        with suppress(ConnectionError):
            worker.connection.send(task)

    def hear(self, wait_seconds: float = TICK_SECONDS) -> Iterator[Reply]:
        """The answers that are there, or come within this time; WorkerEnded as soon as a worker is no more."""
        started_at = time.monotonic()
        connections = {worker.connection: worker for worker in self.workers}
        ready = wait([*connections, self._template.control], wait_seconds)
        # Time in which this process did not run, such as a night asleep, is not time that a worker took.
        self._look(min(time.monotonic() - started_at, 2 * TICK_SECONDS))
        for connection, worker in connections.items():
            if connection in ready:
                yield from self._replies_of(worker)
        if self._template.control in ready:
            self._hear_ends()

    def new_oom_kills(self) -> int:
        """How many processes of this container were killed for want of memory since the start."""
        return oom_kills_so_far() - self._oom_kills_before

    def stack_of(self, worker: Worker, ask: bool) -> str:
        """The stack of a worker: what it wrote when it died, or when it is asked now. Empty if it cannot answer."""
        if ask:
            with suppress(psutil.Error):
                worker.process.send_signal(STACK_SIGNAL)
            deadline = time.monotonic() + STACK_SECONDS
            while os.fstat(worker.stack_file).st_size == 0 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.05)
        size = os.fstat(worker.stack_file).st_size
        return os.pread(worker.stack_file, size, 0).decode(errors="replace")

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        for worker in self.workers:
            worker.connection.close()
            os.close(worker.stack_file)
        end_template(self._template)
        for worker in self.workers:
            # The template has ended them; if it was killed itself, nobody has.
            with suppress(psutil.Error):
                worker.process.kill()
        self.workers = []

    def _look(self, seconds: float) -> None:
        """Count the time that busy workers were waited for, and look at their memory now and then."""
        now = time.monotonic()
        due = now - self._looked_at >= TICK_SECONDS
        if due:
            self._looked_at = now
        for worker in self.workers:
            if worker.tasks:
                worker.watched_seconds += seconds
            if due:
                with suppress(psutil.Error):
                    worker.memory_bytes = worker.process.memory_info().rss or worker.memory_bytes

    def _replies_of(self, worker: Worker) -> Iterator[Reply]:
        """What a worker has said, also if it is no more: its last words come before its end."""
        while worker.connection.poll():
            try:
                reply: Reply = worker.connection.recv()
            except (EOFError, OSError):
                raise self._ended(worker) from None
            worker.tasks.popleft()
            worker.watched_seconds = 0.0
            yield reply

    def _ended(self, worker: Worker) -> WorkerEnded:
        """The end of a worker that has let go of its connection: the template knows the signal, in a moment."""
        while worker.process.pid not in self._exit_codes and self._template.control.poll(MOST_END_SECONDS):
            self._hear_ends()
        return WorkerEnded(worker, self._exit_codes.get(worker.process.pid))

    def _hear_ends(self) -> None:
        """Note how a worker ended; that it did, its own connection tells."""
        try:
            ended: Ended = self._template.control.recv()
        except (EOFError, OSError):
            raise self._template_ended() from None
        self._exit_codes[ended.pid] = ended.exit_code

    def _template_ended(self) -> WorkerEnded:
        """Without the template no worker's end would be told."""
        return WorkerEnded(None, self._template.process.wait())
