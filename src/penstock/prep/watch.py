"""Supervises a preparation: counts what happens, shows it, logs it, and may end it."""

import logging
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import format_size
from penstock.prep.tasks import LeftOut, PrepTask, TaskProgress, TaskRecord
from penstock.runtime.durable import Journal
from penstock.runtime.memory import MemoryMonitor
from penstock.runtime.progress import ProgressLogger
from penstock.runtime.worker_process import WorkerError, innermost
from penstock.runtime.workers import Supervisor, WorkerEnd
from penstock.runtime.world import Stopped, StopRequest

_SHOWN = 5
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    verbose: bool = True
    plain: bool = False
    monitor: MemoryMonitor | None = None
    stops_when_exceeded: bool = False
    """End when more memory was measured than allowed."""
    stop: StopRequest | None = None


class Watch(Supervisor[PrepTask]):
    def __init__(
        self,
        log: Path,
        tasks: Sequence[PrepTask],
        kept: Sequence[TaskRecord],
        options: WatchOptions,
        num_workers: int,
        skips: bool = False,
    ) -> None:
        """`skips`: a file at which two workers have died is left out, instead of ending the preparation."""
        self.records = {record.number: record for record in kept}
        self.new_samples, self.num_workers = 0, num_workers
        self._num_tasks, self._options, self._skips = len(tasks), options, skips
        self._journal = Journal(log)
        self._running: dict[int, TaskProgress] = {}
        self._files: dict[int, str] = {}
        self._died_at: set[str] = set()
        self._files_done = sum(len(record.inputs) for record in kept)
        num_files = sum(len(task.files) for task in tasks)
        self._progress = ProgressLogger(
            "preparing", "file", num_files, done=self._files_done, plain=options.plain, show_rate=False
        )
        self._began_at = time.monotonic()
        self.write("begin", tasks=len(tasks), kept_tasks=len(kept), files=num_files, workers=num_workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._progress.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            self._check_stop()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began_at

    def started(self, task: PrepTask) -> None:
        self._files[task.number] = task.files[0].path

    def received(self, task: PrepTask, event: TaskProgress | LeftOut) -> bool:
        self._add(event)
        self._show()  # whether memory has run out is asked between messages, when the pool has had its chance to shrink
        return isinstance(event, TaskProgress) and event.has_written

    def on_event(self, event: TaskProgress | LeftOut) -> None:
        self._add(event)
        self.tick()

    def _add(self, event: TaskProgress | LeftOut) -> None:
        self._files[event.task] = event.file
        if isinstance(event, LeftOut):
            self._progress.note(f"left out: {event.reason}")
            logger.debug("%s", event.stack)
            self.write("left_out", task=event.task, file=event.file, reason=event.reason)
        else:
            self._running[event.task] = event

    def done(self, record: TaskRecord) -> None:
        self._running.pop(record.number, None)
        self.records[record.number] = record
        self.new_samples += record.num_samples
        self._files_done += len(record.inputs)
        if self._options.verbose:
            for entry in record.inputs:
                self.write("file", path=entry.path, bytes=entry.num_bytes, samples=entry.num_samples)
        self.write("task", task=record.number, samples=record.num_samples, batches=len(record.batches))
        self._show()

    def died(self, task: PrepTask, end: WorkerEnd) -> PrepTask:
        return self.retried(task, end.how, advice_after(end))

    def retried(self, task: PrepTask, ending: str, advice: str) -> PrepTask:
        """Memory may have been short for a moment: once more. A file at which two workers died is to blame."""
        file = self._files[task.number]
        text = f"{file}: a worker process {ending} at this file"
        self.write("worker_ended", task=task.number, file=file, reason=ending)
        if file not in self._died_at:
            self._died_at.add(file)
            logger.warning("%s; it is tried once more", text)
            return task
        reason = f"{text} for the second time; {advice}"
        if not self._skips:
            raise WorkerError(reason)
        self.on_event(LeftOut(task.number, file, reason, ""))
        return replace(task, left_out={**task.left_out, file: reason})

    def hangs(self, task: PrepTask, name: str, seconds: float, longest_seconds: float, stack: str) -> None:
        """Nobody is killed for it: a large file is no error, and only the user knows how long one may take."""
        file = self._files[task.number]
        usual = f"; until now it was {longest_seconds:.1f} s at most" if longest_seconds else ""
        where = f"; it is in {line}" if (line := innermost(stack)) else ""
        self._progress.note(
            f"{file}: nothing was heard of this file for {seconds:.0f} s{usual}{where}; it goes on, Ctrl-C stops and "
            "keeps what is done"
        )
        self.write("silent", task=task.number, file=file, seconds=round(seconds, 1))

    def _show(self) -> None:
        """Show how far it is; raise when somebody asked to stop."""
        files = self._files_done + sum(event.num_files for event in self._running.values())
        if files != self._progress.done:
            self._progress.advance(files - self._progress.done, self._fields)
        else:
            self._progress.refresh(self._fields)
        self._check_stop()

    def tick(self) -> None:
        """Show how far it is; raise when somebody asked to stop, or memory has run out."""
        self._show()
        monitor = self._options.monitor
        if monitor is not None and self.takes_too_much():
            taken, limit = format_size(monitor.last_bytes), format_size(monitor.report.limit_bytes)
            advice = "lower preprocessing.batch_size, or raise memory.limit"
            if monitor.report.start_bytes >= monitor.report.limit_bytes:
                alone = format_size(monitor.report.start_bytes)
                advice = f"raise memory.limit: the program alone takes {alone}"
            raise BudgetExceeded(
                f"preparing takes {taken} of the {limit} allowed; {advice}; what is done is kept"
            )

    def takes_too_much(self) -> bool:
        monitor = self._options.monitor
        if monitor is None or not self._exceeds(monitor):
            return False
        monitor.sample()  # a worker may just have been given up
        return self._exceeds(monitor)

    def _exceeds(self, monitor: MemoryMonitor) -> bool:
        return self._options.stops_when_exceeded and monitor.last_bytes > monitor.report.limit_bytes

    def printed(self, line: str) -> None:
        self._progress.note(line)

    def write(self, event: str, **fields: Any) -> None:
        self._journal.write({"event": event, "time": round(time.time(), 3), **fields})

    def _check_stop(self) -> None:
        if stop := self._options.stop:
            done_tasks = len(self.records)
            self.write("stopped", done_tasks=done_tasks)
            done = f"{done_tasks} of {self._num_tasks} tasks are done and kept"
            raise Stopped(f"{done}; run the same again to go on", stop)

    def _fields(self) -> Mapping[str, str]:
        new = self.new_samples + sum(event.num_samples for event in self._running.values())
        fields = {"samples": f"{new:,}", "samples/s": f"{new / max(self.seconds, 1e-9):,.0f}"}
        if self._options.monitor is not None:
            fields["memory"] = format_size(self._options.monitor.last_bytes)
        return fields


def advice_after(end: WorkerEnd) -> str:
    if end.exit_code == -signal.SIGKILL:
        return "most often memory has run out: lower preprocessing.num_workers or batch_size, or raise memory.limit"
    if line := innermost(end.stack):
        return f"it was in {line}"
    return "something that extract calls ends the process"


class PrepSummary:
    """What a preparation did; `new_samples` are those of this time, `num_workers` is 0 for all in one process."""

    def __init__(
        self,
        records: Sequence[TaskRecord],
        kept_tasks: int,
        new_samples: int,
        num_workers: int,
        seconds: float,
    ) -> None:
        self.kept_tasks, self.num_tasks, self.new_samples = kept_tasks, len(records), new_samples
        self.num_workers, self.seconds = num_workers, seconds
        inputs = [entry for record in records for entry in record.inputs]
        batches = [batch for record in records for batch in record.batches]
        self.num_files, self.bytes_read = len(inputs), sum(entry.num_bytes for entry in inputs)
        self.num_batches, self.bytes_written = len(batches), sum(batch.num_bytes for batch in batches)
        self.num_samples = sum(batch.num_samples for batch in batches)
        self.nan_samples = sum(record.nan_samples for record in records)
        self.left_out = {file: reason for record in records for file, reason in record.left_out.items()}
        without = [entry.path for entry in inputs if not entry.num_samples]
        self.empty = [path for path in without if path not in self.left_out]
        """Files that gave no sample, without being left out."""
        self.largest_errors: dict[str, float] = {}
        """Of rounding to float16, by array."""
        for record in records:
            for name, error in record.largest_errors.items():
                self.largest_errors[name] = max(error, self.largest_errors.get(name, 0.0))

    def lines(self) -> list[str]:
        samples = counted(self.num_samples, "sample")
        files = counted(self.num_files - len(self.left_out), "file")
        batches = f"{counted(self.num_batches, 'batch file')}, {format_size(self.bytes_written)}"
        found = [f"prepared  {samples} of {files} in {batches}"]
        if self.kept_tasks < self.num_tasks:
            rate = f"{self.new_samples / max(self.seconds, 1e-9):,.0f} samples/s"
            workers = f"{self.num_workers} worker process{'es' if self.num_workers > 1 else ''}"
            found.append(
                f"time      {self.seconds:.1f} s, {rate}, {workers if self.num_workers else 'one process'}"
            )
        if self.kept_tasks:
            found.append(f"kept      {self.kept_tasks:,} of {self.num_tasks:,} tasks were done before")
        for name, error in self.largest_errors.items():
            found.append(f"float16   {name}: largest rounding error {error:.3g}")
        if self.empty:
            found.append(
                f"empty     {counted(len(self.empty), 'file')} gave no samples, first {self.empty[0]}"
            )
        if self.nan_samples:
            found.append(f"NaN       {counted(self.nan_samples, 'sample')} with features that are NaN")
        if self.left_out:
            found.append(f"left out  {counted(len(self.left_out), 'file')}")
            found += [f"          {reason}" for reason in [*self.left_out.values()][:_SHOWN]]
            if len(self.left_out) > _SHOWN:
                found.append(f"          and {len(self.left_out) - _SHOWN:,} more, see log.jsonl")
        return found

    def as_record(self) -> dict[str, Any]:
        return {
            "files": self.num_files,
            "samples": self.num_samples,
            "batches": self.num_batches,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "left_out": len(self.left_out),
            "empty": len(self.empty),
            "nan_samples": self.nan_samples,
            "workers": self.num_workers,
            "seconds": round(self.seconds, 3),
            "kept_tasks": self.kept_tasks,
        }


def counted(count: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "sample"), counted(2000, "batch file")
    ('1 sample', '2,000 batch files')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
