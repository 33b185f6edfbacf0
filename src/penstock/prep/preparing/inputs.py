"""Which raw files there are, in which order, and whether they are still the ones that were seen before."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from penstock.config.errors import ConfigError, DataError
from penstock.readers.files import DataFile, list_files
from penstock.readers.fingerprints import ends_checksum
from penstock.readers.uris import is_uri
from penstock.store.checksums import file_checksum
from penstock.store.manifest import InputRecord

INPUT_PATH = "preprocessing.input_path"

_NUMBERS = re.compile(r"(\d+)")


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
        found = list(_files_in(part)) if of_any_kind and _is_directory(part) else list_files(part)
        files += sorted(found, key=lambda file: natural_key(file.path))
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            raise DataError(f"'{', '.join(parts)}' names {file.path} twice; its samples would be there twice")
        seen.add(file.path)
    return files


def input_parts(input_path: str) -> list[str]:
    """Single paths and globs; a comma is part of a name where a file is called so."""
    parts = [input_path] if os.path.exists(input_path) else input_path.split(",")
    return [part.strip() for part in parts if part.strip()]


def _is_directory(part: str) -> bool:
    return not is_uri(part) and os.path.isdir(os.path.expanduser(part))


def _files_in(part: str) -> Iterator[DataFile]:
    folder = os.path.expanduser(part)
    names = [entry.name for entry in os.scandir(folder) if entry.is_file() and entry.name[0] not in "._"]
    if not names:
        raise DataError(f"{folder}: has no files in it")
    for name in names:
        yield from list_files(os.path.join(folder, name))


def mark_input(file: DataFile) -> InputRecord:
    """Look at a file: at all of its bytes, or of a file in a store at the first and the last."""
    if is_uri(file.path):
        return InputRecord(file.path, file.size_bytes, ends_checksum(file))
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
