"""What a run takes of its machine between two lines of the log: processor, disk, memory of the device."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil
import torch

from penstock.runtime.memory import process_tree
from penstock.runtime.world import available_cores


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
