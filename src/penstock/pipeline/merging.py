"""Merging as a command: the batch files of a run file's intermediate_dir become its store."""

from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB, format_size
from penstock.pipeline.prep_memory import measured, memory_lines
from penstock.pipeline.run_config import RunConfig
from penstock.prep.preparing.folder import PLAN_NAME
from penstock.prep.sections import Compression, Preprocessing, SampleSchema, Splits, StoreTarget
from penstock.runtime.limits import limit_of
from penstock.runtime.memory import MemoryMonitor, MemoryReport, stage_of
from penstock.runtime.progress import ProgressLogger
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge import MergeOptions, MergeResult, SplitShares, merge, verify
from penstock.store.merge.options import check_strategy
from penstock.store.schema import ArrayNames

_COMPRESSED_TARGETS = (StoreTarget.parquet, StoreTarget.ipc)
_LIMIT_PARTS = 4
"""A shuffle may hold one of so many parts of memory.limit; the rest is for the processes themselves."""
_MOST_SHUFFLE_BYTES = 256 * MIB
"""Of one process: with more the files are written no faster."""


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge made."""

    merged: MergeResult
    differences: list[str] | None
    """Between the store and the batch files, one line each; None: nobody looked for them."""
    memory: MemoryReport | None
    """None: it was not measured."""

    def lines(self) -> list[str]:
        """For the terminal."""
        verified = "verified  files, counts, heads, types and sampled rows are those of the batch files"
        return [
            merged_line(self.merged),
            *([verified] if self.differences == [] else []),
            *memory_lines(self.memory),
        ]


def merge_run(
    run: RunConfig, *, check: bool = False, allow_pickle: bool = False, plain: bool = False
) -> MergeReport:
    """Merge the batch files of a run, and compare the store with them where that is asked for."""
    section = preprocessing_of(run)
    with measured(section, run.memory) as monitor:
        merged = merge_batches(run, monitor, allow_pickle=allow_pickle, plain=plain)
        differences = None
        if check:
            with stage_of(monitor, "verifying"):
                differences = verify(section.output_dir, section.intermediate_dir, allow_pickle=allow_pickle)
    return MergeReport(merged, differences, None if monitor is None else monitor.report)


def merge_batches(
    run: RunConfig, monitor: MemoryMonitor | None, *, allow_pickle: bool = False, plain: bool = False
) -> MergeResult:
    """Make the store of a run; batch files of an unfinished preparation are refused."""
    section = preprocessing_of(run)
    source = Path(section.intermediate_dir)
    if (source / PLAN_NAME).exists() and not (source / MANIFEST_NAME).exists():
        raise DataError(
            f"{source}: its batch files are not finished; run penstock prep, which goes on with them"
        )
    with stage_of(monitor, "merging"), ProgressLogger("merging", "samples", plain=plain) as progress:
        return merge(
            source,
            section.output_dir,
            section.merge_strategy.value,
            options=merge_options(run, allow_pickle),
            progress=progress,
        )


def merged_line(merged: MergeResult) -> str:
    """What was merged, for the terminal."""
    splits = ", ".join(f"{name} {count:,}" for name, count in merged.num_samples.items())
    size = format_size(merged.num_bytes)
    return f"merged    {merged.num_batches:,} batch files to {merged.output_dir}: {splits}; {size}"


def preprocessing_of(run: RunConfig) -> Preprocessing:
    """The section that preparing and merging need."""
    if run.preprocessing is None:
        raise ConfigError.at("preprocessing", "is required by this command: input_path, extract, output_dir")
    return run.preprocessing


def merge_options(run: RunConfig, allow_pickle: bool = False) -> MergeOptions:
    """What the run file says, in the terms of the store. `compression` is for batch files, and for a store where its
    target has any."""
    section = preprocessing_of(run)
    is_compressed = section.target in _COMPRESSED_TARGETS
    options = MergeOptions(
        splits=_shares(section.splits),
        shuffle=section.shuffle,
        seed=section.seed,
        target=section.target.value,
        heads=section.heads.value,
        compression=section.compression.value if is_compressed else Compression.none.value,
        level=section.compression_level if is_compressed else None,
        workers=section.merge_workers,
        memory_bytes=min(limit_of(run.memory) // _LIMIT_PARTS, _MOST_SHUFFLE_BYTES * section.merge_workers),
        allow_pickle=allow_pickle,
        names=_names(section.sample_schema),
    )
    check_strategy(section.merge_strategy.value, options)
    return options


def _names(declared: SampleSchema) -> ArrayNames | None:
    """How arrays are called where the run file says so; else the manifest of the batch files knows."""
    if not declared.model_fields_set & {"features_name", "label_prefix", "mask_prefix"}:
        return None
    return ArrayNames(declared.features_name, declared.label_prefix, declared.mask_prefix)


def _shares(splits: Splits | None) -> SplitShares | None:
    return None if splits is None else SplitShares(splits.train, splits.val, splits.test, splits.by.value)
