"""Tasks in several processes: hand them out, hear of them, repeat once what a killed worker had."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import wait
from types import TracebackType
from typing import Self

import psutil

from penstock.config.sizes import format_size
from penstock.prep.preparing.crew.crew_size import CrewSize
from penstock.prep.preparing.crew.printing import lines_of_processes
from penstock.prep.preparing.crew.second_chances import SecondChances
from penstock.prep.preparing.crew.worker import Assignment, Failed, Message, do_tasks
from penstock.prep.preparing.crew.worker_process import TICK_SECONDS, WorkerProcess, advice_after
from penstock.prep.preparing.records import TaskRecord
from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import TaskProgress, Work
from penstock.runtime.memory import process_bytes, tree_bytes
from penstock.runtime.worker_process import how_ended

logger = logging.getLogger(__name__)


class Worker(WorkerProcess):
    """A worker, and what it has in hand."""

    def __init__(self, work: Work, stdout: int) -> None:
        super().__init__(partial(do_tasks, work), stdout)
        self.assignment: Assignment | None = None
        self.file: str | None = None
        """The raw file that it is at."""
        self.has_written = False
        """Whether it has made a batch file, so that its memory says what a worker takes."""

    def give(self, assignment: Assignment) -> None:
        """Let it begin a task."""
        self.assignment, self.file = assignment, None
        self.send(assignment)


def run_in_processes(size: CrewSize, work: Work, tasks: Sequence[Task], watch: Watch) -> None:
    """Do all tasks in as many processes as fit."""
    with lines_of_processes(watch.note) as stdout, Crew(size, work, tasks, watch, stdout) as crew:
        crew.run()


class Crew:
    """Workers and what they have in hand."""

    def __init__(self, size: CrewSize, work: Work, tasks: Sequence[Task], watch: Watch, stdout: int) -> None:
        self._size, self._work, self._watch, self._stdout = size, work, watch, stdout
        self._waiting = deque(Assignment(task) for task in tasks)
        self._workers: list[Worker] = []
        self._chances = SecondChances(work.skips, watch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.channel.close()  # so that all of them end at the same time
        for worker in self._workers:
            worker.end()

    def run(self) -> None:
        """Work until nothing is left."""
        self._start(self._size.start)
        while self._hand_out():
            channels = {worker.channel: worker for worker in self._workers if worker.assignment is not None}
            for channel in wait(list(channels), TICK_SECONDS):
                self._hear(channels[channel])
            for worker in list(self._workers):
                if worker.assignment is not None and worker.is_gone:
                    self._replace(worker)
            if self._watch.takes_too_much and len(self._workers) > 1:
                self._shrink()
            else:
                self._watch.check()
                self._grow()
        if len(self._workers) < self._size.most:
            logger.info(
                "preprocessing.num_workers: %d of %d worker processes were started; the work was done before it was "
                "known whether memory.limit (%s) has room for more",
                *(len(self._workers), self._size.most, format_size(self._size.limit_bytes)),
            )

    def _start(self, count: int) -> None:
        self._workers += [Worker(self._work, self._stdout) for _ in range(count)]
        self._watch.num_workers = max(self._watch.num_workers, len(self._workers))

    def _grow(self) -> None:
        """Start more workers where there is work and memory for them, once what the present ones take is known."""
        num_workers = len(self._workers)
        if num_workers >= self._size.most or not self._waiting:
            return
        if not all(worker.has_written for worker in self._workers):
            return
        # What workers share with each other and with this process, libraries above all, a further one does not add.
        sizes = [process_bytes(psutil.Process(worker.process.pid)).private for worker in self._workers]
        largest = max(sizes)
        count = self._size.addition(num_workers, tree_bytes(), largest)
        self._start(min(count, len(self._waiting)))
        if not count:
            self._stay(num_workers, f"each of them takes up to {format_size(largest)}")

    def _shrink(self) -> None:
        """Give up the last worker, whose task another one will do."""
        worker = self._workers.pop()
        worker.end()
        if worker.assignment is not None:
            self._waiting.appendleft(worker.assignment)
            self._watch.put_back(worker.assignment.task)
        self._stay(len(self._workers), "more took too much")
        self._watch.measure()

    def _stay(self, num_workers: int, reason: str) -> None:
        """Go on with so many workers until the end."""
        if self._size.most != num_workers:
            logger.warning(
                "preprocessing.num_workers: going on with %d of %d worker processes, since memory.limit is %s and %s",
                *(num_workers, self._size.most, format_size(self._size.limit_bytes), reason),
            )
        self._size = replace(self._size, most=num_workers)

    def _hand_out(self) -> bool:
        """Give every idle worker a task; whether anybody has one."""
        for worker in self._workers:
            if worker.assignment is None and self._waiting:
                assignment = self._waiting.popleft()
                worker.give(assignment)
                self._watch.began(assignment.task)
        return any(worker.assignment is not None for worker in self._workers)

    def _hear(self, worker: Worker) -> None:
        try:
            message: Message = worker.receive()
        except (EOFError, OSError):
            self._replace(worker)
            return
        if isinstance(message, TaskRecord):
            worker.assignment, worker.has_written = None, True
            self._watch.done(message)
        elif isinstance(message, Failed):
            message.raise_here()
        else:
            if isinstance(message, TaskProgress):
                worker.file = message.file
                worker.has_written |= message.has_written
            self._watch.hear(message)

    def _replace(self, worker: Worker) -> None:
        """A worker is no more: another takes its place, and somebody its task."""
        assignment, exit_code = worker.assignment, worker.end()
        assert assignment is not None
        file = worker.file or assignment.task.files[0].path
        again = self._chances.take(assignment, file, how_ended(exit_code), advice_after(exit_code))
        self._workers[self._workers.index(worker)] = Worker(self._work, self._stdout)
        self._waiting.appendleft(again)
