"""Where a preparation and its merge may write: folders that can be written to, apart from the raw files.

What is written must never be read as raw data the next time. All of this is found out before anything is written.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.prep.inputs import input_parts
from penstock.prep.merge.staging import check_free, staging_folder, store_there
from penstock.prep.sections import HeadFiles, Preprocessing, StoreTarget
from penstock.readers.files import DataFile
from penstock.readers.store_manifest import MANIFEST_NAME
from penstock.readers.uris import is_uri

INTERMEDIATE_DIR = "preprocessing.intermediate_dir"
OUTPUT_DIR = "preprocessing.output_dir"
_WRITTEN = [
    "batch_00000_00000.batch",
    "batch_00000_00000.npz",
    "task_00000.json",
    "manifest.json",
    "log.jsonl",
    "X_train.npy",
    "labels_train.npz",
    "masks_train.npz",
    "part-00000.parquet",
    "part-00000.arrow",
    "train.h5",
]
"""Names like those of all files that a preparation and a merge write."""


def check_place(key: str, folder: str, input_path: str, files: Sequence[DataFile]) -> None:
    """Refuse a folder that cannot be written to, or in which raw files are looked for, under the key that names it."""
    check_writable(key, folder)
    absolute = os.path.realpath(folder)
    inside = {
        parent for parent in {os.path.dirname(file.path) for file in files} if _lies_in(parent, absolute)
    }
    inner = next((file.path for file in files if os.path.dirname(file.path) in inside), None)
    if inner is not None:
        raise ConfigError.at(
            key, f"{folder} holds the raw file {inner}; choose a folder apart from raw files"
        )
    for part in input_parts(input_path):
        if is_uri(part):
            continue
        path = os.path.expanduser(part)
        if os.path.isdir(path) and _lies_in(folder, os.path.realpath(path)):
            raise ConfigError.at(
                key, f"{folder} lies in {part}, the folder of the raw files; choose one outside of it"
            )
        if not os.path.exists(path) and glob.has_magic(path) and _reaches(_steps(path), _steps(absolute)):
            raise ConfigError.at(
                key,
                f"{folder} is where preprocessing.input_path {part} looks for raw files; choose another folder",
            )


def check_writable(key: str, folder: str) -> None:
    """Refuse a folder that can neither be written to nor made."""
    nearest = Path(folder)
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ConfigError.at(key, f"{nearest} is a file; name a folder, or a place where one can be made")
    if not os.access(nearest, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY
        why = "is on a read-only file system" if is_read_only else "may not be written to by this user"
        raise ConfigError.at(key, f"{nearest} {why}; choose another folder")


def check_output_place(section: Preprocessing) -> None:
    """Refuse an output_dir that a merge would refuse after hours of work, or that batch files are in the way of."""
    batches, store = section.intermediate_dir, section.output_dir
    real_batches, real_store = os.path.realpath(batches), os.path.realpath(store)
    outside = "choose one outside of it"
    if real_batches == real_store:
        raise ConfigError.at(OUTPUT_DIR, f"{store} is also intermediate_dir; choose another folder")
    if _lies_in(real_store, real_batches):
        raise ConfigError.at(OUTPUT_DIR, f"{store} lies in {batches}, the intermediate_dir; {outside}")
    if _lies_in(real_batches, real_store):
        raise ConfigError.at(INTERMEDIATE_DIR, f"{batches} lies in {store}, the output_dir; {outside}")
    folder = Path(store)
    try:
        store_there(folder)
        merge_goes_on = any(folder.glob(str(staging_folder(Path(), "*") / MANIFEST_NAME)))
        if not merge_goes_on:
            names = _store_names(section)
            check_free(
                folder, [str(path.relative_to(folder)) for name in names for path in folder.glob(name)]
            )
    except ConfigError as error:
        raise ConfigError.at(OUTPUT_DIR, str(error)) from error


def _store_names(section: Preprocessing) -> Iterator[str]:
    """Patterns of the names that a store will have, as far as the run file tells: samples may have more arrays."""
    splits = section.splits
    shares = {"train": 1.0} if splits is None else splits.model_dump(include={"train", "val", "test"})
    for split in (name for name, share in shares.items() if share):
        if section.target is StoreTarget.hdf5:
            yield f"{split}.h5"
        elif section.target is not StoreTarget.npy:
            yield split
        else:
            yield f"X_{split}.npy"
            yield from (f"X_{group}_{split}.npy" for group in section.sample_schema.feature_groups)
            head_files = ".npz" if section.heads is HeadFiles.npz else "/*.npy"
            yield from (f"{heads}_{split}{head_files}" for heads in ("labels", "masks"))


def _lies_in(path: str, absolute_folder: str) -> bool:
    """Whether a path is a folder or below it; that has no links in it."""
    if is_uri(path):
        return False
    absolute = os.path.realpath(path)
    return absolute == absolute_folder or absolute.startswith(os.path.join(absolute_folder, ""))


def _steps(path: str) -> list[str]:
    return [step for step in os.path.abspath(path).split(os.sep) if step]


def _reaches(pattern: Sequence[str], folder: Sequence[str]) -> bool:
    """Whether a glob names a folder, or files that are written below it."""
    if not folder:
        return not pattern or any(fnmatchcase(name, pattern[-1]) for name in _WRITTEN)
    if not pattern:
        return False
    if pattern[0] == "**":
        return _reaches(pattern[1:], folder) or _reaches(pattern, folder[1:])
    return fnmatchcase(folder[0], pattern[0]) and _reaches(pattern[1:], folder[1:])
