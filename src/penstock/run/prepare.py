"""Preparation as a command: from a run file to batch files and a store."""

import logging
import signal
from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.prep.merge.merging import MergeResult
from penstock.prep.prepare import prepare as prepare_files
from penstock.prep.watch import PrepSummary, WatchOptions
from penstock.readers.sections import BadRows, ReadingSection
from penstock.run.merge import (
    measured,
    memory_lines,
    merge_batches,
    merge_options,
    merged_lines,
    preprocessing_of,
)
from penstock.run.run_config import RunConfig, load_run
from penstock.runtime.memory import MemoryReport, limit_of
from penstock.runtime.sections import OnExceed
from penstock.runtime.world import Stopped, stop_on_signal

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PrepResult:
    """What a preparation made."""

    prepared: PrepSummary
    merged: MergeResult | None
    """None: the batch files were not merged."""
    memory: MemoryReport | None
    """None: it was not measured."""

    def lines(self) -> list[str]:
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
        merge_options(run)  # what cannot be merged is refused before hours of work
    if section.extract is None and run.data_config.bad_rows is BadRows.quarantine:
        logger.warning(
            "data_config.bad_rows: quarantine is for training; here a row that cannot be used fails its file, which "
            "preprocessing.on_error: skip leaves out"
        )
    with measured(section, run.memory) as monitor:
        # A first Ctrl-C ends it in good order, since a task that is left anywhere is done again.
        with stop_on_signal(at_once=True) as stop:
            stops_when_exceeded = run.memory.on_exceed is OnExceed.stop
            try:
                prepared = prepare_files(
                    section,
                    reading_of(run),
                    limit_bytes=limit_of(run.memory),
                    restart=restart,
                    keep_done=keep_done,
                    merges=merge,
                    watching=WatchOptions(section.verbose, plain, monitor, stops_when_exceeded, stop),
                )
            except KeyboardInterrupt:
                stop.signal_number = stop.signal_number or signal.SIGINT  # extract may have raised it
                raise Stopped("what is done is kept; run the same again to go on", stop) from None
        merged = merge_batches(run, monitor, plain=plain) if merge else None
    return PrepResult(prepared, merged, None if monitor is None else monitor.report)


def reading_of(run: RunConfig) -> ReadingSection:
    """How columns are read: as data_config says, but CSV files have a header unless it says which columns there are."""
    config = run.data_config
    written = {
        name: getattr(config, name) for name in ReadingSection.model_fields if name in config.model_fields_set
    }
    if not config.resolved_input_fields():
        written.setdefault("with_header", True)
    return ReadingSection(**written)
