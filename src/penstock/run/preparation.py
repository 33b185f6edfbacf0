"""Preparation and merging, as commands and as functions: from a run file to batch files and a store."""

import json
import logging
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError
from penstock.config.load import apply_edits
from penstock.config.sizes import MIB, format_size, parse_size
from penstock.config.write import section_data
from penstock.observe.summary import counted
from penstock.prep.inputs import OUTPUT_DIR, check_output_folder
from penstock.prep.merge.merge_options import DeclaredTypes, MergeOptions, SplitShares, with_strategy
from penstock.prep.merge.merging import MergeResult
from penstock.prep.merge.merging import merge as merge_files
from penstock.prep.merge.verify import verify
from penstock.prep.prepare import prepare as prepare_files
from penstock.prep.schema import feature_dtype
from penstock.prep.sections import Compression, Preprocessing, SplitBy, StoreTarget
from penstock.prep.state_folder import LOG_NAME
from penstock.prep.watch import PrepSummary, WatchOptions
from penstock.readers.files import DataFile
from penstock.readers.sections import BadRows, ReadingSection
from penstock.readers.store_schema import MANIFEST_NAME, PREPARATION_NAME, ArrayNames, StoreManifest
from penstock.run.run_config import RunConfig, load_run
from penstock.runtime.durable import Journal
from penstock.runtime.memory import MemoryMonitor, MemoryReport, default_limit, limit_of, stage_of
from penstock.runtime.progress import ProgressLogger
from penstock.runtime.sections import MemorySection, OnExceed
from penstock.runtime.world import Stopped, stop_on_signal

logger = logging.getLogger(__name__)

_COMPRESSED_TARGETS = (StoreTarget.parquet, StoreTarget.ipc)
_LIMIT_PARTS = 4
"""A shuffle may hold one of so many parts of memory.limit; the rest is for the processes themselves."""
_MAX_SHUFFLE_BYTES = 256 * MIB
"""Of one process: with more the files are written no faster."""
_SAMPLE_SECONDS = 0.2
_CHECKED_BY_VALUES = ("labels", "mask_dtype")
"""Types that a merge compares with those of the arrays themselves, as it does `dtype`."""
_MAX_LINES = 20


@contextmanager
def measured(
    section: Preprocessing, memory: MemorySection, is_logged: bool = True
) -> Iterator[MemoryMonitor | None]:
    """The preparation's log gets the peaks also after an error; None: the run file says not to measure."""
    if not is_measured(section, memory):
        yield None
        return
    monitor = MemoryMonitor(limit_of(memory), _SAMPLE_SECONDS)
    try:
        with monitor:
            yield monitor
    finally:
        folder, report = Path(section.intermediate_dir), monitor.report
        if is_logged and (folder / PREPARATION_NAME).exists():
            Journal(folder / LOG_NAME).write(
                {
                    "event": "memory",
                    "time": round(time.time(), 3),
                    "peak_bytes": report.peak_bytes,
                    "stage_peaks": dict(report.stage_peaks),
                    "workers_peak_bytes": report.started_peak_bytes,
                }
            )


def is_measured(section: Preprocessing, memory: MemorySection) -> bool:
    return section.monitor_memory and memory.monitor


def memory_lines(report: MemoryReport | None) -> list[str]:
    """For the terminal: one line, or none where nothing was measured."""
    if report is None:
        return []
    stages = ", ".join(f"{name} {format_size(peak)}" for name, peak in report.stage_peaks.items())
    workers = ""
    if report.started_peak_bytes >= MIB:  # no worker is so small, but others come and go
        workers = f"; worker processes at most {format_size(report.started_peak_bytes)}"
    return [f"memory    at most {format_size(report.peak_bytes)} ({stages}){workers}"]


def preprocessing_of(run: RunConfig) -> Preprocessing:
    if run.preprocessing is None:
        raise ConfigError.at("preprocessing", "is required by this command: input_path, extract, output_dir")
    return run.preprocessing


def merge_options(section: Preprocessing, limit_bytes: int, allow_pickle: bool = False) -> MergeOptions:
    """What the section does not set itself is None: the manifest of the batch files has it."""
    declared, splits = section.sample_schema, section.splits
    names = shares = None
    if declared.model_fields_set & {"features_name", "label_prefix", "mask_prefix"}:
        names = ArrayNames(declared.features_name, declared.label_prefix, declared.mask_prefix)
    if splits is not None:
        shares = SplitShares(splits.train, splits.val, splits.test, splits.by.value)
    sets_features = "dtype" in section.model_fields_set or not section.use_float32
    types = DeclaredTypes(
        features=feature_dtype(section) if sets_features else None,
        labels=declared.labels,
        masks=declared.mask_dtype if "mask_dtype" in declared.model_fields_set else None,
    )
    # `compression` is that of batch files, and of a store where its target has any.
    is_compressed = section.target in _COMPRESSED_TARGETS
    options = MergeOptions(
        splits=shares,
        shuffle=section.shuffle,
        seed=section.seed,
        target=section.target.value,
        heads=section.heads.value,
        compression=section.compression.value if is_compressed else Compression.none.value,
        level=section.compression_level if is_compressed else None,
        workers=section.merge_workers,
        memory_bytes=min(limit_bytes // _LIMIT_PARTS, _MAX_SHUFFLE_BYTES * section.merge_workers),
        allow_pickle=allow_pickle,
        names=names,
        types=None if types == DeclaredTypes() else types,
    )
    return with_strategy(options, section.merge_strategy.value)


def _check_output(key: str, output_dir: str, intermediate_dir: Path, input_path: str = "") -> None:
    """Refuse a folder with raw files: those that the manifest of the batch files lists, and those of `input_path`."""
    has_manifest = (intermediate_dir / MANIFEST_NAME).exists()
    inputs = StoreManifest.read(intermediate_dir).inputs if has_manifest else ()
    files = [DataFile(record.path, record.num_bytes) for record in inputs]
    check_output_folder(key, output_dir, input_path, files)


def _check_prepared_with(
    section: Preprocessing, intermediate_dir: Path, compares_group_key: bool = True
) -> None:
    """Refuse batch files that penstock prep made of other samples, groups or names than the section sets."""
    if not (intermediate_dir / MANIFEST_NAME).exists():
        return
    expected: dict[str, Any] = {
        f"schema.{key}": value
        for key, value in section_data(section.sample_schema).items()
        if key not in _CHECKED_BY_VALUES
    }
    if section.extract is not None:
        expected["extract"] = section.extract
    if section.feature_dtypes:
        expected["feature_dtypes"] = {group: dtype.value for group, dtype in section.feature_dtypes.items()}
    if compares_group_key and section.splits is not None and section.splits.by is SplitBy.group:
        expected["splits.group_key"] = section.splits.group_key
    settings = StoreManifest.read(intermediate_dir).settings
    known = {**settings, **{f"schema.{key}": value for key, value in settings.get("schema", {}).items()}}
    for key, value in expected.items():
        if key in known and known[key] != value:
            raise ConfigError(
                f"{intermediate_dir}: its batch files were prepared with {key} {json.dumps(known[key])}, not "
                f"{json.dumps(value)}; put it back as it was, or prepare them again with penstock prep --restart"
            )


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge made, and the memory that it took; None: that was not measured."""

    merged: MergeResult
    memory: MemoryReport | None

    def lines(self) -> list[str]:
        return [*merged_lines(self.merged), *memory_lines(self.memory)]


def merged_lines(merged: MergeResult) -> list[str]:
    splits = ", ".join(f"{name} {count:,}" for name, count in merged.num_samples.items())
    store = f"{splits}; {format_size(merged.num_bytes)}"
    batch_files = counted(merged.num_batches, "batch file")
    if merged.was_whole:
        return [
            f"whole     {merged.output_dir} has all samples of {batch_files} already: {store}; nothing was written"
        ]
    lines = [f"merged    {batch_files} to {merged.output_dir}: {store}"]
    if merged.replaced is not None:
        lines.append(f"replaced  the store that was there, with {merged.replaced}")
    if merged.kept_tasks:
        lines.append(f"kept      {merged.kept_tasks:,} of {merged.num_tasks:,} parts were merged before")
        return [*lines, f"time      {merged.seconds:.1f} s"]
    rate = sum(merged.num_samples.values()) / max(merged.seconds, 1e-9)
    return [*lines, f"time      {merged.seconds:.1f} s, {rate:,.0f} samples/s"]


def merge_run(
    run: RunConfig, *, restart: bool = False, allow_pickle: bool = False, plain: bool = False
) -> MergeReport:
    """Merge the batch files of a run; a whole store of the same is left as it is, and `restart` writes it again."""
    with measured(preprocessing_of(run), run.memory) as monitor:
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
    """Make the store of a run, in place of one that its output_dir may have; Ctrl-C keeps what is done."""
    section = preprocessing_of(run)
    source = Path(section.intermediate_dir)
    _check_prepared_with(section, source)
    _check_output(OUTPUT_DIR, section.output_dir, source, section.input_path)
    with (
        stage_of(monitor, "merging"),
        stop_on_signal(at_once=True) as stop,
        ProgressLogger("merging", "samples", plain=plain) as progress,
    ):
        try:
            return merge_files(
                source,
                section.output_dir,
                section.merge_strategy.value,
                options=merge_options(section, limit_of(run.memory), allow_pickle),
                progress=progress,
                restart=restart,
            )
        except KeyboardInterrupt:
            raise Stopped("what is merged is kept; run the same again to go on", stop) from None


def merge(
    intermediate_dir: str | Path,
    output_dir: str | Path,
    strategy: str = "sequential",
    *,
    splits: Mapping[str, Any] | None = None,
    shuffle: bool = False,
    seed: int = 0,
    target: str = "npy",
    heads: str = "npz",
    compression: str = "none",
    compression_level: int | None = None,
    merge_workers: int = 1,
    memory_limit: int | str | None = None,
    schema: Mapping[str, Any] | None = None,
    dtype: str | None = None,
    allow_pickle: bool = False,
    replace: bool = False,
    restart: bool = False,
    progress: ProgressLogger | None = None,
) -> MergeResult:
    """Make one store of all batch files of a folder: X_train.npy, labels_train.npz, ..., and manifest.json last.

    Files are those that manifest.json lists; without one batch_*, else all, that end in .batch, .npz, .npy, .pkl or
    .pickle, in natural order (batch_9 before batch_10). A killed merge is continued by the same call. A store that is
    there and the same is left as it is.

    Names and checks are those of the section `preprocessing` of run files:

    strategy: sequential, in bounded memory; accumulative, all at once, for small data.
    splits: shares that add up to 1, and what stays together: {"train": 0.8, "val": 0.1, "test": 0.1, "by": "sample"};
        by is sample, group (samples with the same number in the array `groups`) or file. None: everything is train.
    shuffle: write every split in random order. seed: splits and order follow from it.
    target: npy, parquet, ipc or hdf5. heads: npz, labels and masks are one file each; npy, a file for each head.
    compression, compression_level: of target parquet (zlib, zstd, lz4) or ipc (zstd, lz4).
    merge_workers: processes that write.
    memory_limit: what all processes may take, such as "4GiB"; a shuffle takes a quarter. None: 60 % of the machine.
    schema: how arrays are called, and types of old samples: {"label_prefix": "labels_", "labels": {"move": "int32"}}.
    dtype: type of the features of old samples.

    allow_pickle: convert old files of pickled samples too; only plain data is unpickled.
    replace: write over a store that has other options or samples, which is refused otherwise.
    restart: write the store again even if the same is there, and forget what a killed merge has done.
    progress: a penstock.ProgressLogger, which counts samples; None: nothing is shown.

    ConfigError: a wrong argument; DataError: a file that cannot be merged. The result has the samples of each
    split, bytes, seconds, and what was replaced or kept.
    """
    for name, path in (("intermediate_dir", intermediate_dir), ("output_dir", output_dir)):
        if not isinstance(path, str | Path):
            raise ConfigError.at(name, f"is {path!r}; it must be the path of a folder")
    if progress is not None and not isinstance(progress, ProgressLogger):
        raise ConfigError.at("progress", f"is {progress!r}; it must be a penstock.ProgressLogger or None")
    compares_group_key = "group_key" in (splits or ())
    if isinstance(splits, Mapping) and splits.get("by") == SplitBy.group.value:
        splits = {"group_key": "groups", **splits}  # batch files have the groups already
    keys = {
        "merge_strategy": strategy,
        "splits": splits,
        "shuffle": shuffle,
        "seed": seed,
        "target": target,
        "heads": heads,
        "compression": compression,
        "compression_level": compression_level,
        "merge_workers": merge_workers,
        "schema": schema,
        "dtype": dtype,
    }
    section = apply_edits(Preprocessing(), [(key, value) for key, value in keys.items() if value is not None])
    if section.compression is not Compression.none and section.target not in _COMPRESSED_TARGETS:
        raise ConfigError.at("compression", f"{compression} is not for target {target}; leave it out")
    source = Path(intermediate_dir)
    _check_prepared_with(section, source, compares_group_key)
    _check_output("output_dir", str(output_dir), source)
    try:
        limit_bytes = parse_size(memory_limit) if isinstance(memory_limit, str) else memory_limit
    except ValueError as error:
        raise ConfigError.at("memory_limit", str(error)) from None
    return merge_files(
        source,
        output_dir,
        section.merge_strategy.value,
        options=merge_options(section, default_limit() if limit_bytes is None else limit_bytes, allow_pickle),
        progress=progress,
        replace=replace,
        restart=restart,
    )


@dataclass(frozen=True, slots=True)
class VerifyReport:
    output_dir: str
    differences: list[str]
    memory: MemoryReport | None

    def lines(self) -> list[str]:
        """For the terminal; a single difference is left to the line that says that it is an error."""
        agree = "all files, counts, heads, types, options and sampled rows are those of the batch files and the run"
        several = self.differences[:_MAX_LINES] if len(self.differences) > 1 else []
        return [
            *([] if self.differences else [f"verified  {self.output_dir}: {agree}"]),
            *(f"differs   {difference}" for difference in several),
            *memory_lines(self.memory),
        ]

    @property
    def error(self) -> str | None:
        """The first difference, and how many more there are; None where there is none."""
        if not self.differences:
            return None
        first, *others = self.differences
        return first + (f" (and {len(others)} more)" if others else "")


def verify_run(run: RunConfig, *, allow_pickle: bool = False, plain: bool = False) -> VerifyReport:
    section = preprocessing_of(run)
    _check_prepared_with(section, Path(section.intermediate_dir))
    options = merge_options(section, limit_of(run.memory), allow_pickle)
    with (
        measured(section, run.memory, is_logged=False) as monitor,
        stage_of(monitor, "verifying"),
        ProgressLogger("verifying", "samples", plain=plain) as progress,
    ):
        differences = verify(
            section.output_dir,
            section.intermediate_dir,
            options=options,
            allow_pickle=allow_pickle,
            progress=progress,
        )
    return VerifyReport(section.output_dir, differences, None if monitor is None else monitor.report)


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

    What an earlier call has done is kept; `restart` starts over. With `keep_done`, it is kept also where the module of
    extract was changed since, and the rest is done with its new text. `merge=False` leaves the batch files as they are.
    """
    run = run if isinstance(run, RunConfig) else load_run(run)
    section = preprocessing_of(run)
    if restart and keep_done:
        raise ConfigError("--restart removes what is done and --keep-done keeps it; choose one of them")
    if merge:
        merge_options(section, limit_of(run.memory))  # what cannot be merged is refused before hours of work
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
