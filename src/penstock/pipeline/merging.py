"""Merging as a command: the batch files of a run file's intermediate_dir become its store."""

from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.config.sizes import format_size
from penstock.pipeline.numbers import counted
from penstock.pipeline.prep_memory import measured, memory_lines
from penstock.pipeline.prepared_with import check_prepared_with
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.store_options import store_options
from penstock.pipeline.store_place import check_store_place
from penstock.prep.merge import MergeOptions, MergeResult, merge
from penstock.prep.preparing.places import OUTPUT_DIR
from penstock.prep.sections import Preprocessing
from penstock.runtime.interrupts import Stopped, stop_on_signal
from penstock.runtime.limits import limit_of
from penstock.runtime.memory import MemoryMonitor, MemoryReport, stage_of
from penstock.runtime.progress import ProgressLogger


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge made."""

    merged: MergeResult
    memory: MemoryReport | None
    """None: it was not measured."""

    def lines(self) -> list[str]:
        """For the terminal."""
        return [*merged_lines(self.merged), *memory_lines(self.memory)]


def merge_run(
    run: RunConfig, *, restart: bool = False, allow_pickle: bool = False, plain: bool = False
) -> MergeReport:
    """Merge the batch files of a run; a whole store of the same is left as it is, and `restart` writes it anew."""
    section = preprocessing_of(run)
    with measured(section, run.memory) as monitor:
        merged = merge_batches(run, monitor, restart=restart, allow_pickle=allow_pickle, plain=plain)
    return MergeReport(merged, None if monitor is None else monitor.report)


def merge_batches(
    run: RunConfig,
    monitor: MemoryMonitor | None,
    *,
    restart: bool = False,
    allow_pickle: bool = False,
    plain: bool = False,
) -> MergeResult:
    """Make the store of a run, in place of one that its output_dir may have.

    An unfinished preparation is refused, one of something else than the run file says, and an output_dir with raw
    files. A first Ctrl-C ends it in good order: what is done is noted.
    """
    section = preprocessing_of(run)
    source = Path(section.intermediate_dir)
    check_prepared_with(section, source)
    check_store_place(OUTPUT_DIR, section.output_dir, source, section.input_path)
    with (
        stage_of(monitor, "merging"),
        stop_on_signal(at_once=True) as stop,
        ProgressLogger("merging", "samples", plain=plain) as progress,
    ):
        try:
            return merge(
                source,
                section.output_dir,
                section.merge_strategy.value,
                options=merge_options(run, allow_pickle),
                progress=progress,
                restart=restart,
            )
        except KeyboardInterrupt:
            raise Stopped("what is merged is kept; run the same again to go on", stop) from None


def merged_lines(merged: MergeResult) -> list[str]:
    """What was merged, for the terminal."""
    splits = ", ".join(f"{name} {count:,}" for name, count in merged.num_samples.items())
    store = f"{splits}; {format_size(merged.num_bytes)}"
    batch_files = counted(merged.num_batches, "batch file")
    if merged.was_whole:
        told = f"{merged.output_dir} has all samples of {batch_files} already: {store}"
        return [f"whole     {told}; nothing was written"]
    lines = [f"merged    {batch_files} to {merged.output_dir}: {store}"]
    if merged.replaced is not None:
        lines.append(f"replaced  the store that was there, with {merged.replaced}")
    if merged.kept_tasks:
        lines.append(f"kept      {merged.kept_tasks:,} of {merged.num_tasks:,} parts were merged before")
        return [*lines, f"time      {merged.seconds:.1f} s"]
    rate = sum(merged.num_samples.values()) / max(merged.seconds, 1e-9)
    return [*lines, f"time      {merged.seconds:.1f} s, {rate:,.0f} samples/s"]


def preprocessing_of(run: RunConfig) -> Preprocessing:
    """The section that preparing and merging need."""
    if run.preprocessing is None:
        raise ConfigError.at("preprocessing", "is required by this command: input_path, extract, output_dir")
    return run.preprocessing


def merge_options(run: RunConfig, allow_pickle: bool = False) -> MergeOptions:
    """What the run file says of the store, in its terms."""
    return store_options(preprocessing_of(run), limit_of(run.memory), allow_pickle)
