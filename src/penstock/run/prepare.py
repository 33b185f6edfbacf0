"""Preparation as a command: from a run file to batch files and a store."""

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB, format_size
from penstock.prep.merge.merging import MergeResult
from penstock.prep.preparing.folder import LOG_NAME
from penstock.prep.preparing.preparing import prepare as prepare_files
from penstock.prep.preparing.summary import PrepSummary
from penstock.prep.preparing.watching import WatchOptions
from penstock.prep.sections import Preprocessing
from penstock.readers.sections import BadRows, ReadingSection
from penstock.readers.store_manifest import PREPARATION_NAME
from penstock.run.merge import merge_batches, merge_options, merged_lines, preprocessing_of
from penstock.run.run_config import RunConfig
from penstock.run.run_file import load_run
from penstock.runtime.interrupts import Stopped, stop_on_signal
from penstock.runtime.journal import Journal
from penstock.runtime.limits import limit_of
from penstock.runtime.memory import MemoryMonitor, MemoryReport
from penstock.runtime.sections import MemorySection, OnExceed

logger = logging.getLogger(__name__)

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


@dataclass(frozen=True, slots=True)
class PrepResult:
    """What a preparation made."""

    prepared: PrepSummary
    merged: MergeResult | None
    """None: the batch files were not merged."""
    memory: MemoryReport | None
    """None: it was not measured."""

    def lines(self) -> list[str]:
        """For the terminal."""
        merged = [] if self.merged is None else merged_lines(self.merged)
        return [*self.prepared.lines(), *merged, *memory_lines(self.memory)]


def prepare(
    run: RunConfig | str | Path,
    *,
    merge: bool = True,
    restart: bool = False,
    keep_done: bool = False,
    plain: bool = False,
) -> PrepResult:
    """Make batch files of raw files, and a store of them, as the `preprocessing` section of a run file says.

    What an earlier call has done is kept; `restart` begins anew. With `keep_done`, it is kept also where the module of
    extract was changed since, and the rest is done with its new text. `merge=False` leaves the batch files as they are.
    """
    run = run if isinstance(run, RunConfig) else load_run(run)
    section = preprocessing_of(run)
    if restart and keep_done:
        raise ConfigError("--restart removes what is done and --keep-done keeps it; choose one of them")
    if merge:
        merge_options(run)  # what cannot be merged is told before hours of work
    _warn_of_bad_rows(run)
    with measured(section, run.memory) as monitor:
        watching = WatchOptions(
            verbose=section.verbose,
            plain=plain,
            monitor=monitor,
            stops_when_exceeded=run.memory.on_exceed is OnExceed.stop,
        )
        prepared = _prepare_files(run, watching, restart=restart, keep_done=keep_done, merges=merge)
        merged = merge_batches(run, monitor, plain=plain) if merge else None
    return PrepResult(prepared, merged, None if monitor is None else monitor.report)


def _warn_of_bad_rows(run: RunConfig) -> None:
    """Tell that rows are not written aside here: a run file may say so for training."""
    if preprocessing_of(run).extract is None and run.data_config.bad_rows is BadRows.quarantine:
        logger.warning(
            "data_config.bad_rows: quarantine is for training; here a row that cannot be used fails its file, which "
            "preprocessing.on_error: skip leaves out"
        )


def _prepare_files(run: RunConfig, watching: WatchOptions, **choices: bool) -> PrepSummary:
    """The batch files. A first Ctrl-C ends it in good order, since a task that is left anywhere is done again."""
    with stop_on_signal(at_once=True) as stop:
        try:
            return prepare_files(
                preprocessing_of(run),
                reading_of(run),
                limit_bytes=limit_of(run.memory),
                **choices,
                watching=replace(watching, stop=stop),
            )
        except KeyboardInterrupt:
            stop.signal_number = stop.signal_number or signal.SIGINT  # extract may have raised it
            raise Stopped("what is done is kept; run the same again to go on", stop) from None


def reading_of(run: RunConfig) -> ReadingSection:
    """How columns are read: as data_config says, but CSV files have a header unless it says which columns there are."""
    config = run.data_config
    written = {
        name: getattr(config, name) for name in ReadingSection.model_fields if name in config.model_fields_set
    }
    if not config.resolved_input_fields():
        written.setdefault("with_header", True)
    return ReadingSection(**written)
