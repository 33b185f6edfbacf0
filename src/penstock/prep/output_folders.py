"""Which folders a preparation and its merge may write to; all of this is checked before anything is written.

They can be written to, lie apart from each other, and what is written there is never read as raw data the next time.
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
from penstock.readers.files import DataFile, is_uri
from penstock.readers.store_manifest import MANIFEST_NAME

INTERMEDIATE_DIR, OUTPUT_DIR = "preprocessing.intermediate_dir", "preprocessing.output_dir"
# Names like those of all files that a preparation and a merge write.
_WRITTEN_NAMES = (
    *("batch_00000_00000.batch", "batch_00000_00000.npz", "task_00000.json", "manifest.json", "log.jsonl"),
    *(
        "X_train.npy",
        "labels_train.npz",
        "masks_train.npz",
        "part-00000.parquet",
        "part-00000.arrow",
        "train.h5",
    ),
)


def check_output_folder(key: str, folder: str, input_path: str, files: Sequence[DataFile]) -> None:
    """Refuse a folder that cannot be written to, or in which raw files are looked for, under the key that names it."""
    existing = Path(folder)
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise ConfigError.at(key, f"{existing} is a file; name a folder, or a place where one can be made")
    if not os.access(existing, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(existing).f_flag & os.ST_RDONLY
        why = "is on a read-only file system" if is_read_only else "may not be written to by this user"
        raise ConfigError.at(key, f"{existing} {why}; choose another folder")
    absolute = os.path.realpath(folder)
    parents = {os.path.dirname(file.path) for file in files}
    inside = {parent for parent in parents if _lies_in(parent, absolute)}
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
        if os.path.exists(path) or not glob.has_magic(path):
            continue
        pattern = os.path.abspath(path).split(os.sep)
        if _finds(pattern, absolute.split(os.sep)):
            raise ConfigError.at(
                key,
                f"{folder} is where preprocessing.input_path {part} looks for raw files; choose another folder",
            )


def check_store_folder(section: Preprocessing) -> None:
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
        if not any(folder.glob(str(staging_folder(Path(), "*") / MANIFEST_NAME))):  # no merge to go on with
            found = [path for pattern in _store_names(section) for path in folder.glob(pattern)]
            check_free(folder, [str(path.relative_to(folder)) for path in found])
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
            groups = [f"_{group}" for group in section.sample_schema.feature_groups]
            yield from (f"X{group}_{split}.npy" for group in ("", *groups))
            suffix = ".npz" if section.heads is HeadFiles.npz else "/*.npy"
            yield from (f"{heads}_{split}{suffix}" for heads in ("labels", "masks"))


def _lies_in(path: str, absolute_folder: str) -> bool:
    """Whether a path is a folder or below it; that has no links in it."""
    if is_uri(path):
        return False
    absolute = os.path.realpath(path)
    return absolute == absolute_folder or absolute.startswith(os.path.join(absolute_folder, ""))


def _finds(pattern: Sequence[str], folder: Sequence[str]) -> bool:
    """Whether a glob names a folder, or files that are written below it; both by the names in their paths."""
    if not folder:
        return not pattern or any(fnmatchcase(name, pattern[-1]) for name in _WRITTEN_NAMES)
    if not pattern:
        return False
    if pattern[0] == "**":
        return _finds(pattern[1:], folder) or _finds(pattern, folder[1:])
    return fnmatchcase(folder[0], pattern[0]) and _finds(pattern[1:], folder[1:])
