"""The log of a run: a line every so many steps, with what the machine did."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psutil
import torch

from penstock.config.sizes import format_size
from penstock.observe.numbers import number
from penstock.runtime.durable import Journal
from penstock.runtime.memory import MemoryMonitor, process_tree
from penstock.runtime.progress import Fields
from penstock.runtime.world import available_cores
from penstock.training.precision import LossScaling
from penstock.training.progress import TrainingProgress
from penstock.training.train import Stopwatch


@dataclass(frozen=True, slots=True)
class Totals:
    """What the process tree has used since it began."""

    seconds: float
    cpu_seconds: float
    read_bytes: int
    """From the disk, where the system tells it; what its cache holds does not count."""


class MachineUse:
    """Answers by the difference to the last time it was asked."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._process, self._clock = psutil.Process(), clock
        self._last = self._totals()

    def since_last(self) -> dict[str, float]:
        """Shares and rates by the names that the log has for them."""
        last, now = self._last, self._totals()
        self._last = now
        seconds = max(now.seconds - last.seconds, 1e-9)
        # What processes that ended meanwhile had used is gone from the sums.
        used_seconds = max(0.0, now.cpu_seconds - last.cpu_seconds)
        found: dict[str, float] = {
            "cpu_share": round(min(1.0, used_seconds / (seconds * available_cores())), 4),
            "read_bytes_per_second": round(max(0, now.read_bytes - last.read_bytes) / seconds),
        }
        if torch.cuda.is_available():
            found["device_memory_bytes"] = torch.cuda.memory_allocated()
        return found

    def _totals(self) -> Totals:
        cpu_seconds, read_bytes = 0.0, 0
        for process in process_tree(self._process):
            try:
                times = process.cpu_times()
                cpu_seconds += times.user + times.system
                read_bytes += process.io_counters().read_bytes
            except (psutil.Error, AttributeError, OSError):
                continue  # it has ended, or the system does not tell
        return Totals(self._clock(), cpu_seconds, read_bytes)


class StepLog:
    """Counts rows and seconds between two lines."""

    def __init__(
        self,
        journal: Journal,
        every: int,
        learning_rates: Callable[[TrainingProgress], Mapping[str, float]],
        monitor: MemoryMonitor,
        start_rows: int = 0,
        start_step: int = 0,
        scaling: LossScaling | None = None,
    ) -> None:
        self._journal, self._every, self._learning_rates, self._monitor = (
            journal,
            every,
            learning_rates,
            monitor,
        )
        self._rows, self._since = start_rows, time.perf_counter()
        self._start_rows, self._start = start_rows, self._since
        self._step = start_step
        self._machine, self._scaling = MachineUse(), scaling

    def record(
        self,
        progress: TrainingProgress,
        stopwatch: Stopwatch,
        metrics: Callable[[], Mapping[str, float]] = dict,
        remarks: Callable[[], Mapping[str, str]] = dict,
    ) -> dict[str, float] | None:
        """Write a line when it is the turn of this step; gives its numbers by name.

        `metrics`, and the `remarks` about them, are asked only then.
        """
        if progress.step % self._every:
            return None
        logged = self._write_line(progress, stopwatch, metrics(), remarks())
        progress.close_window()
        return logged

    def record_last(
        self,
        progress: TrainingProgress,
        stopwatch: Stopwatch,
        metrics: Callable[[], Mapping[str, float]] = dict,
        remarks: Callable[[], Mapping[str, str]] = dict,
    ) -> dict[str, float] | None:
        """Write a line of the steps since the last one, where a run ends in between; gives its numbers by name.

        The window stays open: a run that goes on later writes the same lines as one that never ended.
        """
        if not progress.window_steps or _has_line(self._journal.read(), progress.step):
            return None
        return self._write_line(progress, stopwatch, metrics(), remarks())

    def _write_line(
        self,
        progress: TrainingProgress,
        stopwatch: Stopwatch,
        trained: Mapping[str, float],
        remarked: Mapping[str, str],
    ) -> dict[str, float]:
        now = time.perf_counter()
        rates = dict(self._learning_rates(progress))
        numbers = {
            "loss": progress.mean_loss(),
            "rows_per_second": round((progress.rows - self._rows) / (now - self._since)),
            "steps_per_second": round((progress.step - self._step) / (now - self._since), 3),
            "waiting_share": round(stopwatch.waiting_share(), 4),
            "memory_bytes": self._monitor.last_bytes,
            **self._machine.since_last(),
            **({"loss_scale": self._scaling.scale} if self._scaling is not None else {}),
        }
        self._journal.write(
            {
                "step": progress.step,
                "epoch": progress.epoch,
                "rows": progress.rows,
                "learning_rate": rates,
                **numbers,
                **({"train_metrics": dict(trained)} if trained else {}),
                **({"train_remarks": dict(remarked)} if remarked else {}),
            }
        )
        self._rows, self._step, self._since = progress.rows, progress.step, now
        return numbers | {f"learning_rate/{name}": rate for name, rate in rates.items()} | dict(trained)

    def tell(self, event: str, step: int, **facts: Any) -> None:
        """Write a line that is not about steps: a plan, a save, the end."""
        self._journal.write({"event": event, "step": step, **facts})

    def fields(
        self,
        progress: TrainingProgress,
        loss: float,
        stopwatch: Stopwatch,
        metrics: Mapping[str, float],
    ) -> Fields:
        """What stands beside the bar."""
        seconds = time.perf_counter() - self._start
        report = self._monitor.report
        return {
            "loss": f"{loss:.4f}",
            **{name: number(value) for name, value in metrics.items()},
            "rows/s": f"{(progress.rows - self._start_rows) / seconds:,.0f}",
            "lr": rates_line(self._learning_rates(progress)),
            "memory": f"{format_size(self._monitor.last_bytes)}/{format_size(report.limit_bytes)}",
            "waiting": f"{stopwatch.waiting_share():.0%}",
        }


def rates_line(rates: Mapping[str, float]) -> str:
    """Learning rates as they stand beside the bar; of several each is named.

    >>> rates_line({"dense": 0.001}), rates_line({"sparse": 0.05, "dense": 0.0005})
    ('0.001', 'sparse 0.05, dense 0.0005')
    """
    if len(rates) == 1:
        return "".join(f"{rate:.3g}" for rate in rates.values())
    return ", ".join(f"{name} {rate:.3g}" for name, rate in rates.items())


def _has_line(records: Iterable[Mapping[str, Any]], step: int) -> bool:
    """Whether the log tells of this step already: a run was killed behind its last line, before it told its end."""
    return any(record["step"] == step and "event" not in record for record in records)


def told_end(records: Iterable[Mapping[str, Any]], step: int) -> Mapping[str, Any] | None:
    """The line that says that a run came to its end after this step; None where it was killed before."""
    ends = (record for record in records if record.get("event") == "end" and record["step"] == step)
    return next(ends, None)
