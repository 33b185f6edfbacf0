"""One who hears of everything that happens in a preparation: counts it, shows it, writes it down, and may end it."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import format_size
from penstock.prep.preparing.crew.patience import Patience
from penstock.prep.preparing.records import TaskRecord
from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.work import LeftOut, TaskProgress
from penstock.runtime.durable import Journal
from penstock.runtime.interrupts import Stopped, StopRequest
from penstock.runtime.memory import MemoryMonitor, stage_of
from penstock.runtime.progress import ProgressLogger

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What is shown and written down, and what ends a preparation."""

    verbose: bool = True
    """A line in the log for each file."""
    plain: bool = False
    monitor: MemoryMonitor | None = None
    stops_when_exceeded: bool = False
    """End when more memory was measured than allowed."""
    stop: StopRequest | None = None

    @property
    def ends_when_exceeded(self) -> bool:
        """Whether somebody measures memory and ends a preparation that takes too much."""
        return self.monitor is not None and self.stops_when_exceeded

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Count the memory of what happens inside a `with` block for this stage."""
        return stage_of(self.monitor, name)


class Watch:
    """What the tasks of a preparation tell, from all processes."""

    def __init__(
        self,
        log: Path,
        tasks: Sequence[Task],
        kept: Sequence[TaskRecord],
        options: WatchOptions,
        num_workers: int,
    ) -> None:
        self.records = {record.number: record for record in kept}
        self.new_samples = 0
        self.num_workers = num_workers
        self._num_tasks = len(tasks)
        self._options = options
        self._journal = Journal(log)
        self._running: dict[int, TaskProgress] = {}
        self._patience = Patience()
        self._files_done = sum(len(record.inputs) for record in kept)
        num_files = sum(len(task.files) for task in tasks)
        self._progress = ProgressLogger(
            "preparing",
            "file",
            num_files,
            done=self._files_done,
            plain=options.plain,
            show_rate=False,
        )
        self._began_at = time.monotonic()
        self.write("begin", tasks=len(tasks), kept_tasks=len(kept), files=num_files, workers=num_workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            self._check_stop()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began_at

    def began(self, task: Task) -> None:
        """A task was handed to somebody who will tell of it, or be silent for too long."""
        self._patience.began(task)

    def put_back(self, task: Task) -> None:
        """A task waits again: who had it is no more."""
        self._patience.put_back(task)

    def hear(self, event: TaskProgress | LeftOut) -> None:
        """Something happened in a task."""
        self._patience.heard(event.task, event.file)
        if isinstance(event, LeftOut):
            self._progress.note(f"left out: {event.reason}")
            logger.debug("%s", event.stack)
            self.write("left_out", task=event.task, file=event.file, reason=event.reason)
        else:
            self._running[event.task] = event
        self.check()

    def done(self, record: TaskRecord) -> None:
        """A task is done: its record is on disk."""
        self._running.pop(record.number, None)
        self._patience.ended(record.number)
        self.records[record.number] = record
        self.new_samples += record.num_samples
        self._files_done += len(record.inputs)
        if self._options.verbose:
            for entry in record.inputs:
                self.write("file", path=entry.path, bytes=entry.num_bytes, samples=entry.num_samples)
        self.write("task", task=record.number, samples=record.num_samples, batches=len(record.batches))
        self.check()

    def check(self) -> None:
        """Show how far it is, tell of tasks that are silent; raise when somebody asked to stop, or memory has run out.

        Who waits for tasks calls it again and again, also when nothing was heard.
        """
        self._show()
        for silence in self._patience.silent():
            self._progress.note(silence.line)
            self.write("silent", task=silence.task, file=silence.file, seconds=round(silence.seconds, 1))
        self._check_stop()
        if self._options.monitor is not None and self.takes_too_much:
            raise _too_much(self._options.monitor)

    @property
    def takes_too_much(self) -> bool:
        """Whether more memory was measured last than is allowed."""
        monitor = self._options.monitor
        if monitor is None or not self._options.stops_when_exceeded:
            return False
        return monitor.last_bytes > monitor.report.limit_bytes

    def measure(self) -> None:
        """Look at memory again now."""
        if self._options.monitor is not None:
            self._options.monitor.sample()

    def note(self, line: str) -> None:
        """Show a line that stays, above what is redrawn."""
        self._progress.note(line)

    def write(self, event: str, **fields: Any) -> None:
        """A line in the log."""
        self._journal.write({"event": event, "time": round(time.time(), 3), **fields})

    def _check_stop(self) -> None:
        if stop := self._options.stop:
            done_tasks = len(self.records)
            self.write("stopped", done_tasks=done_tasks)
            done = f"{done_tasks} of {self._num_tasks} tasks are done and kept"
            raise Stopped(f"{done}; run the same again to go on", stop)

    def _show(self) -> None:
        files = self._files_done + sum(event.num_files for event in self._running.values())
        if files != self._progress.done:
            self._progress.advance(files - self._progress.done, self._fields)
        else:
            self._progress.refresh(self._fields)

    def _fields(self) -> Mapping[str, str]:
        new = self.new_samples + sum(event.num_samples for event in self._running.values())
        fields = {"samples": f"{new:,}", "samples/s": f"{new / max(self.seconds, 1e-9):,.0f}"}
        if self._options.monitor is not None:
            fields["memory"] = format_size(self._options.monitor.last_bytes)
        return fields


def _too_much(monitor: MemoryMonitor) -> BudgetExceeded:
    taken, limit = format_size(monitor.last_bytes), format_size(monitor.report.limit_bytes)
    advice = "lower preprocessing.batch_size, or raise memory.limit"
    if monitor.report.start_bytes >= monitor.report.limit_bytes:
        advice = f"raise memory.limit: the program alone takes {format_size(monitor.report.start_bytes)}"
    return BudgetExceeded(f"preparing takes {taken} of the {limit} allowed; {advice}; what is done is kept")
