"""Which raw files there are, whether they are still the same as before, and which folders may be written to.

Folders can be written to, lie apart from each other, and what is written there is never read as raw data the next time.
"""

import logging
import os
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge.staging import check_free, staging_folder, store_there
from penstock.prep.sections import Preprocessing, Splits
from penstock.readers import TABLE_SCHEME
from penstock.readers.files import DataFile, Uri, is_uri, list_files
from penstock.readers.scan import ends_checksum
from penstock.readers.storage import list_folder, object_version
from penstock.readers.store_schema import MANIFEST_NAME, InputRecord
from penstock.runtime.checksums import file_checksum

INPUT_PATH = "preprocessing.input_path"
_NUMBERS = re.compile(r"(\d+)")
INTERMEDIATE_DIR, OUTPUT_DIR = "preprocessing.intermediate_dir", "preprocessing.output_dir"

logger = logging.getLogger(__name__)


def natural_key(path: str) -> list[tuple[int, str]]:
    """So that game_9 comes before game_10.

    >>> sorted(["game_10.log", "game_9.log"], key=natural_key)
    ['game_9.log', 'game_10.log']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(path)]


def list_inputs(input_path: str, of_any_kind: bool) -> list[DataFile]:
    """The raw files of a path, glob or directory, or of several with commas between them, each in natural order.

    `of_any_kind`: a directory stands for all files in it, not only for those that a reader knows.
    """
    parts = input_parts(input_path)
    if not parts:
        raise ConfigError.at(INPUT_PATH, "is required: raw files as a path, glob, list or directory")
    files: list[DataFile] = []
    for part in parts:
        found = _folder_files(part) if of_any_kind else None
        if found is None:
            found = list_files(part)
        _warn_of_folders(part, found)
        files += sorted(found, key=lambda file: natural_key(file.path))
    [(path, count)] = Counter(file.path for file in files).most_common(1)
    if count > 1:
        raise DataError(f"'{', '.join(parts)}' names {path} twice; its samples would be there twice")
    return files


def input_parts(input_path: str) -> list[str]:
    """Single paths and globs; a comma is part of a name where a file is called so."""
    parts = [input_path] if os.path.exists(input_path) else input_path.split(",")
    return [part.strip() for part in parts if part.strip()]


def _folder_files(part: str) -> list[DataFile] | None:
    """All files of a folder but for hidden ones; None where the path is something else."""
    if part.startswith(TABLE_SCHEME):
        return None
    files: list[DataFile] | None = None
    if is_uri(part) and not part.startswith("file://"):
        files = list_folder(Uri.parse(part))
    else:
        folder = f"/{unquote(Uri.parse(part).key)}" if is_uri(part) else os.path.expanduser(part)
        if os.path.isdir(folder):
            paths = [
                entry.path for entry in os.scandir(folder) if entry.is_file() and entry.name[0] not in "._"
            ]
            files = [file for path in paths for file in list_files(path)]
    if files is not None and not files:
        raise DataError(f"{part.rstrip('/')}: has no files in it")
    return files


def _warn_of_folders(part: str, files: Sequence[DataFile]) -> None:
    """Nothing of a folder in a folder is read."""
    folder = os.path.expanduser(part)
    if is_uri(part) or not os.path.isdir(folder):
        return
    read = {os.path.dirname(file.path) for file in files}
    inner = sorted(
        entry.path
        for entry in os.scandir(folder)
        if entry.is_dir() and entry.name[0] not in "._" and entry.path not in read
    )
    if inner:
        what = "a folder in it is" if len(inner) == 1 else f"{len(inner):,} folders in it are"
        logger.warning(
            "%s: %s not read, first %s; a folder with raw files is named by itself", part, what, inner[0]
        )


def mark_input(file: DataFile) -> InputRecord:
    """Look at a file: at all of its bytes, or of a file in a store at its version, the first bytes and the last."""
    if is_uri(file.path):
        checksum = zlib.crc32(object_version(file.path), ends_checksum(file))
        return InputRecord(file.path, file.size_bytes, checksum)
    path = Path(file.path)
    modified_ns = path.stat().st_mtime_ns
    return InputRecord(file.path, file.size_bytes, file_checksum(path), modified_ns)


def is_same_input(record: InputRecord, file: DataFile) -> bool:
    """Whether a file is the one that was read; its bytes are looked at only where size and time do not tell."""
    if file.size_bytes != record.num_bytes:
        return False
    if record.modified_ns is not None and Path(file.path).stat().st_mtime_ns == record.modified_ns:
        return True
    return mark_input(file).checksum == record.checksum


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
        path = os.path.expanduser(part)
        if not is_uri(part) and os.path.isdir(path) and _lies_in(folder, os.path.realpath(path)):
            raise ConfigError.at(
                key, f"{folder} lies in {part}, the folder of the raw files; choose one outside of it"
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
            splits = Splits(train=1.0, val=0.0, test=0.0) if section.splits is None else section.splits
            shares = splits.model_dump(include={"train", "val", "test"})
            forms = ("*_{}.npy", "*_{}.npz", "*_{}/*.npy", "{}.h5", "{}")  # of every target
            patterns = [form.format(split) for split, share in shares.items() if share for form in forms]
            found = [path for pattern in patterns for path in folder.glob(pattern)]
            check_free(folder, [str(path.relative_to(folder)) for path in found])
    except ConfigError as error:
        raise ConfigError.at(OUTPUT_DIR, str(error)) from error


def _lies_in(path: str, absolute_folder: str) -> bool:
    """Whether a path is a folder or below it; that has no links in it."""
    if is_uri(path):
        return False
    absolute = os.path.realpath(path)
    return absolute == absolute_folder or absolute.startswith(os.path.join(absolute_folder, ""))
