"""What a run shows while it trains: the bar, log.jsonl, and what it takes of the machine."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import psutil
import torch

from penstock.config.sizes import format_size
from penstock.observe.summary import number, numbers
from penstock.runtime.durable import Journal
from penstock.runtime.memory import MemoryMonitor, process_tree
from penstock.runtime.progress import Fields, ProgressLogger
from penstock.runtime.world import available_cores
from penstock.training.events import Evaluated, Event, Logged, Skipped, Step, TrainingProgress
from penstock.training.step import LearningRates
from penstock.training.task_metrics import TaskMetrics


class MachineUse:
    """Answers by the difference to the last time it was asked."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._process, self._clock = psutil.Process(), clock
        self._last = self._totals()

    def since_last(self) -> dict[str, float]:
        last, now = self._last, self._totals()
        self._last = now
        # What processes that ended meanwhile had used is gone from the sums.
        seconds, cpu_seconds, read_bytes = (
            max(0.0, ours - before) for ours, before in zip(now, last, strict=True)
        )
        seconds = max(seconds, 1e-9)
        found: dict[str, float] = {
            "cpu_share": round(min(1.0, cpu_seconds / (seconds * available_cores())), 4),
            "read_bytes_per_second": round(read_bytes / seconds),
        }
        if torch.cuda.is_available():
            found["device_memory_bytes"] = torch.cuda.memory_allocated()
        return found

    def _totals(self) -> tuple[float, float, int]:
        """Of the process tree since it began: seconds, processor seconds, bytes from the disk past its cache."""
        cpu_seconds, read_bytes = 0.0, 0
        for process in process_tree(self._process):
            try:
                times = process.cpu_times()
                cpu_seconds += times.user + times.system
                read_bytes += process.io_counters().read_bytes
            except (psutil.Error, AttributeError, OSError):
                continue  # it has ended, or the system does not say
        return self._clock(), cpu_seconds, read_bytes


class RunLog(ExitStack):
    """Listens to a trainer inside a `with` block: shows it on the bar, and writes it into log.jsonl."""

    def __init__(
        self,
        journal: Journal,
        progress: TrainingProgress,
        rates: LearningRates,
        metrics: TaskMetrics,
        monitor: MemoryMonitor,
        *,
        total_steps: int | None = None,
        plain: bool = True,
    ) -> None:
        """`total_steps` are those on the present data, where their number is known."""
        super().__init__()
        total = None if total_steps is None else progress.steps_before + total_steps
        self._bar = ProgressLogger("train", "step", total=total, done=progress.step, plain=plain)
        self.push(self._bar)
        self._journal, self._rates = journal, rates
        self._metrics, self._monitor = metrics, monitor
        self._started_at, self._rows_before = time.perf_counter(), progress.rows

    def __call__(self, event: Event) -> None:
        match event:
            case Step():
                self._bar.advance(fields=lambda: self._fields(event))
            case Logged(progress=progress):
                line: dict[str, Any] = {"step": progress.step, "epoch": progress.epoch, "rows": progress.rows}
                line |= {"learning_rate": dict(event.learning_rates), **event.numbers}
                line |= {"train_metrics": dict(event.train_metrics)} if event.train_metrics else {}
                line |= {"train_remarks": dict(event.remarks)} if event.remarks else {}
                self._journal.write(line)
            case Skipped(loss_scale=None):
                counts = {"skipped_batches": event.num_batches, "num_rows": event.num_rows}
                self.write("skipped", event.step, **counts)
            case Skipped():
                counts = {"overflowed_batches": event.num_batches, "num_rows": event.num_rows}
                self.write("overflow", event.step, **counts, loss_scale=event.loss_scale)
            case Evaluated(is_recalled=False):
                found = numbers(event.evaluation.values, event.evaluation.remarks)
                self._bar.note(f"eval: step {event.step:,}, epoch {event.epoch}: {found}")

    def write(self, event: str, step: int, **facts: Any) -> None:
        """A line that is not about steps: a plan, a skipped batch, the end."""
        self._journal.write({"event": event, "step": step, **facts})

    def _fields(self, event: Step) -> Fields:
        progress, seconds = event.progress, time.perf_counter() - self._started_at
        return {
            "loss": f"{event.loss:.4f}",
            **{name: number(value) for name, value in self._metrics.compute().items()},
            "rows/s": f"{(progress.rows - self._rows_before) / seconds:,.0f}",
            "lr": rates_line(self._rates.values(progress)),
            "memory": f"{format_size(self._monitor.last_bytes)}/{format_size(self._monitor.report.limit_bytes)}",
            "waiting": f"{event.stopwatch.waiting_share():.0%}",
        }


def rates_line(rates: Mapping[str, float]) -> str:
    """Learning rates as they stand beside the bar; of several each is named.

    >>> rates_line({"dense": 0.001}), rates_line({"sparse": 0.05, "dense": 0.0005})
    ('0.001', 'sparse 0.05, dense 0.0005')
    """
    if len(rates) == 1:
        return "".join(f"{rate:.3g}" for rate in rates.values())
    return ", ".join(f"{name} {rate:.3g}" for name, rate in rates.items())
