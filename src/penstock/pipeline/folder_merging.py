"""Merging without a run file: the same keys, as arguments."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError
from penstock.config.load import apply_edits
from penstock.config.sizes import parse_size
from penstock.pipeline.prepared_with import check_prepared_with
from penstock.pipeline.store_options import COMPRESSED_TARGETS, store_options
from penstock.pipeline.store_place import check_store_place
from penstock.prep.merge import MergeResult
from penstock.prep.merge import merge as merge_files
from penstock.prep.sections import Compression, Preprocessing, SplitBy
from penstock.runtime.limits import default_limit
from penstock.runtime.progress import ProgressLogger


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
