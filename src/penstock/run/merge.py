"""Merging as a command and as a function."""

import json
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
from penstock.prep.merge.merging import MergeResult
from penstock.prep.merge.merging import merge as merge_files
from penstock.prep.merge.options import DeclaredTypes, MergeOptions, SplitShares, check_strategy
from penstock.prep.merge.verify import verify
from penstock.prep.places import OUTPUT_DIR, check_place
from penstock.prep.schema import feature_dtype
from penstock.prep.sections import Compression, Preprocessing, SampleSchema, SplitBy, Splits, StoreTarget
from penstock.prep.state_folder import LOG_NAME
from penstock.readers.files import DataFile
from penstock.readers.store_manifest import MANIFEST_NAME, PREPARATION_NAME, Manifest
from penstock.readers.store_schema import ArrayNames
from penstock.run.run_config import RunConfig
from penstock.runtime.durable import Journal
from penstock.runtime.interrupts import Stopped, stop_on_signal
from penstock.runtime.memory import MemoryMonitor, MemoryReport, default_limit, limit_of, stage_of
from penstock.runtime.progress import ProgressLogger
from penstock.runtime.sections import MemorySection

COMPRESSED_TARGETS = (StoreTarget.parquet, StoreTarget.ipc)
_LIMIT_PARTS = 4
"""A shuffle may hold one of so many parts of memory.limit; the rest is for the processes themselves."""
_MOST_SHUFFLE_BYTES = 256 * MIB
"""Of one process: with more the files are written no faster."""


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


def store_options(section: Preprocessing, limit_bytes: int, allow_pickle: bool = False) -> MergeOptions:
    """Form, splits and order of a store. `compression` is for batch files, and for a store where its target has any."""
    is_compressed = section.target in COMPRESSED_TARGETS
    options = MergeOptions(
        splits=_shares(section.splits),
        shuffle=section.shuffle,
        seed=section.seed,
        target=section.target.value,
        heads=section.heads.value,
        compression=section.compression.value if is_compressed else Compression.none.value,
        level=section.compression_level if is_compressed else None,
        workers=section.merge_workers,
        memory_bytes=min(limit_bytes // _LIMIT_PARTS, _MOST_SHUFFLE_BYTES * section.merge_workers),
        allow_pickle=allow_pickle,
        names=_names(section.sample_schema),
        types=_types(section),
    )
    check_strategy(section.merge_strategy.value, options)
    return options


def _names(declared: SampleSchema) -> ArrayNames | None:
    """How arrays are called where the run file says so; else the manifest of the batch files knows."""
    if not declared.model_fields_set & {"features_name", "label_prefix", "mask_prefix"}:
        return None
    return ArrayNames(declared.features_name, declared.label_prefix, declared.mask_prefix)


def _types(section: Preprocessing) -> DeclaredTypes | None:
    """What the run file declares; penstock prep has given its batch files these already, old samples get them now."""
    declared = section.sample_schema
    says_features = "dtype" in section.model_fields_set or not section.use_float32
    types = DeclaredTypes(
        features=feature_dtype(section) if says_features else None,
        labels=declared.labels,
        masks=declared.mask_dtype if "mask_dtype" in declared.model_fields_set else None,
    )
    return None if types == DeclaredTypes() else types


def _shares(splits: Splits | None) -> SplitShares | None:
    return None if splits is None else SplitShares(splits.train, splits.val, splits.test, splits.by.value)


def check_store_place(key: str, output_dir: str, intermediate_dir: Path, input_path: str = "") -> None:
    """Refuse a folder of raw files, under the key that names it, as a preparation does.

    Raw files are those that the batch files were made of, by their manifest, and what `input_path` means.
    """
    has_manifest = (intermediate_dir / MANIFEST_NAME).exists()
    inputs = Manifest.read(intermediate_dir).inputs if has_manifest else ()
    check_place(key, output_dir, input_path, [DataFile(record.path, record.num_bytes) for record in inputs])


_CHECKED_BY_VALUES = ("labels", "mask_dtype")
"""Types that a merge compares with those of the arrays themselves, as it does `dtype`."""


def check_prepared_with(
    section: Preprocessing, intermediate_dir: Path, *, compares_group_key: bool = True
) -> None:
    """Refuse batch files that penstock prep made of other samples, groups or names than the run file asks for.

    Only what it says itself is compared: what is absent is as the batch files have it. How they are stored does not
    matter, nor are files refused that others made.
    """
    if not (intermediate_dir / MANIFEST_NAME).exists():
        return
    settings = Manifest.read(intermediate_dir).settings
    known = {**settings, **{f"schema.{key}": value for key, value in settings.get("schema", {}).items()}}
    for key, said in _said(section, compares_group_key):
        if key in known and known[key] != said:
            raise ConfigError(
                f"{intermediate_dir}: its batch files were prepared with {key} {json.dumps(known[key])}, not "
                f"{json.dumps(said)}; put it back as it was, or prepare them anew with penstock prep --restart"
            )


def _said(section: Preprocessing, compares_group_key: bool) -> Iterator[tuple[str, Any]]:
    """What a run file says of samples, by its keys."""
    if section.extract is not None:
        yield "extract", section.extract
    if section.feature_dtypes:
        yield "feature_dtypes", {group: dtype.value for group, dtype in section.feature_dtypes.items()}
    for key, value in section_data(section.sample_schema).items():
        if key not in _CHECKED_BY_VALUES:
            yield f"schema.{key}", value
    if compares_group_key and section.splits is not None and section.splits.by is SplitBy.group:
        yield "splits.group_key", section.splits.group_key


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
            return merge_files(
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
    restart: write the store anew even if the same is there, and forget what a killed merge has done.
    progress: a penstock.ProgressLogger, which counts samples; None: nothing is shown.

    ConfigError tells a wrong argument, DataError a file that cannot be merged. The result has the samples of each
    split, bytes, seconds, and what was replaced or kept.
    """
    source = _folder("intermediate_dir", intermediate_dir)
    target_folder = _folder("output_dir", output_dir)
    _check_progress(progress)
    keys = {
        "merge_strategy": strategy,
        "splits": _with_group_key(splits),
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
    given = [(key, value) for key, value in keys.items() if value is not None]
    section = apply_edits(Preprocessing(), given)
    if section.compression is not Compression.none and section.target not in COMPRESSED_TARGETS:
        raise ConfigError.at("compression", f"{compression} is not for target {target}; leave it out")
    check_prepared_with(section, source, compares_group_key="group_key" in (splits or ()))
    check_store_place("output_dir", str(output_dir), source)
    return merge_files(
        source,
        target_folder,
        section.merge_strategy.value,
        options=store_options(section, _limit_bytes(memory_limit), allow_pickle),
        progress=progress,
        replace=replace,
        restart=restart,
    )


def _folder(name: str, path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        raise ConfigError.at(name, f"is {path!r}; it must be the path of a folder")
    return Path(path)


def _check_progress(progress: object) -> None:
    if progress is not None and not isinstance(progress, ProgressLogger):
        raise ConfigError.at("progress", f"is {progress!r}; it must be a penstock.ProgressLogger or None")


def _with_group_key(splits: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Batch files have the groups of samples already: which key told them is of no interest any more."""
    if isinstance(splits, Mapping) and splits.get("by") == SplitBy.group.value:
        return {"group_key": "groups", **splits}
    return splits


def _limit_bytes(limit: int | str | None) -> int:
    if limit is None:
        return default_limit()
    try:
        return limit if isinstance(limit, int) else parse_size(limit)
    except ValueError as error:
        raise ConfigError.at("memory_limit", str(error)) from None


_MOST_LINES = 20


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found."""

    output_dir: str
    differences: list[str]
    """One line each; none is good."""
    memory: MemoryReport | None
    """None: it was not measured."""

    def lines(self) -> list[str]:
        """For the terminal; a single difference is left to the line that says that it is an error."""
        agree = "all files, counts, heads, types, options and sampled rows are those of the batch files and the run"
        several = self.differences[:_MOST_LINES] if len(self.differences) > 1 else []
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
    """Compare the store of a run with its batch files and with what the run file says of it."""
    section = preprocessing_of(run)
    check_prepared_with(section, Path(section.intermediate_dir))
    options = merge_options(run, allow_pickle)
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
