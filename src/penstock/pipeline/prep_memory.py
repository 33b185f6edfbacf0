"""Memory of preparing and merging: the peak of each stage, in the log and in the last line."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.config.sizes import MIB, format_size
from penstock.prep.preparing.folder import LOG_NAME
from penstock.prep.sections import Preprocessing
from penstock.readers.store_manifest import PREPARATION_NAME
from penstock.runtime.journal import Journal
from penstock.runtime.limits import limit_of
from penstock.runtime.memory import MemoryMonitor, MemoryReport
from penstock.runtime.sections import MemorySection

_SAMPLE_SECONDS = 0.2


@contextmanager
def measured(
    section: Preprocessing, memory: MemorySection, is_logged: bool = True
) -> Iterator[MemoryMonitor | None]:
    """Measure what happens inside, and log the peaks, also when it fails: then they may tell why.

    None: the run file wants no measuring. What only looks at files is not logged beside them.
    """
    if not is_measured(section, memory):
        yield None
        return
    monitor = MemoryMonitor(limit_of(memory), _SAMPLE_SECONDS)
    try:
        with monitor:
            yield monitor
    finally:
        if is_logged:
            _log(Path(section.intermediate_dir), monitor.report)


def is_measured(section: Preprocessing, memory: MemorySection) -> bool:
    """Whether the run file wants memory to be looked at."""
    return section.monitor_memory and memory.monitor


def memory_lines(report: MemoryReport | None) -> list[str]:
    """For the terminal: one line, or none where nothing was measured."""
    if report is None:
        return []
    stages = ", ".join(f"{name} {format_size(peak)}" for name, peak in report.stage_peaks.items())
    workers = (
        f"; worker processes at most {format_size(report.started_peak_bytes)}"
        if report.started_peak_bytes >= MIB  # no worker is so small, but others come and go
        else ""
    )
    return [f"memory    at most {format_size(report.peak_bytes)} ({stages}){workers}"]


def _log(folder: Path, report: MemoryReport) -> None:
    """In the log of the preparation that made the batch files; a folder that others made is left as it is."""
    if not (folder / PREPARATION_NAME).exists():
        return
    Journal(folder / LOG_NAME).write(
        {
            "event": "memory",
            "time": round(time.time(), 3),
            "peak_bytes": report.peak_bytes,
            "stage_peaks": dict(report.stage_peaks),
            "workers_peak_bytes": report.started_peak_bytes,
        }
    )
