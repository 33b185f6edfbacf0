"""The paths of a run file -> the files they mean.

A path is a file, a directory, a glob, or several of these separated by commas. A directory means the data
files in it; a glob gives its matches in sorted order. Everything that can be wrong with a path is found here,
before anything is read.
"""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import DataError
from penstock.config.nearest import nearest_name

TYPE_OF_SUFFIX = {
    ".parquet": "ParquetDataset",
    ".pq": "ParquetDataset",
    ".csv": "CsvDataset",
    ".tsv": "CsvDataset",
    ".txt": "CsvDataset",
    ".arrow": "ArrowDataset",
    ".feather": "ArrowDataset",
    ".ipc": "ArrowDataset",
    ".json": "JsonDataset",
    ".jsonl": "JsonDataset",
    ".npy": "NumpyDataset",
    ".npz": "NumpyDataset",
    ".tfrecord": "TFRecordDataset",
    ".tfrecords": "TFRecordDataset",
}
"""The dataset type that a file's suffix stands for; in a directory, these are the data files."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Suffixes that stand after the format's own."""

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a data set, as it was found."""

    path: str
    size_bytes: int

    @property
    def suffix(self) -> str:
        """The suffix that tells the format: '.csv' for 'clicks.csv.gz'."""
        return data_suffix(self.path)


def data_suffix(path: str) -> str:
    """The format's suffix in lower case, without a compression's."""
    stem, suffix = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSIONS else suffix


def list_files(path_spec: str) -> list[DataFile]:
    """The files that a path of the run file means, each once, in a fixed order."""
    parts = [path_spec] if os.path.exists(path_spec) else [part.strip() for part in path_spec.split(",")]
    paths = [path for part in parts if part for path in _expand(part)]
    if not paths:
        raise DataError("no data path is given; set train_input_path or eval_input_path")
    for earlier, path in zip(sorted(paths), sorted(paths)[1:], strict=False):
        if earlier == path:
            raise DataError(f"'{path_spec}' names {path} twice; its rows would be read twice")
    return [_data_file(path) for path in paths]


def _expand(part: str) -> Iterator[str]:
    scheme, separator, _ = part.partition("://")
    if separator:
        raise DataError(f"{part}: {scheme}:// paths are not available yet; use a local path")
    path = os.path.expanduser(part)
    if os.path.isdir(path):
        yield from _files_in(path)
    elif os.path.lexists(path):
        yield path
    elif glob.has_magic(path):
        yield from _matches(path)
    else:
        raise _missing(path)


def _matches(pattern: str) -> Iterator[str]:
    matches = sorted(glob.glob(pattern, recursive=True))
    if not matches:
        folder = pattern
        while glob.has_magic(folder):
            folder = os.path.dirname(folder)
        raise DataError(f"{pattern}: matches nothing; {_content(folder or '.')}")
    for match in matches:
        if os.path.isdir(match):
            yield from _files_in(match)
        else:
            yield match


def _files_in(folder: str) -> list[str]:
    """The data files of a directory; where none has a data suffix, those without any."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_file() and entry.name[0] not in "._"]
    except PermissionError as error:
        raise DataError(f"{folder}: no permission to list this directory") from error
    chosen = [name for name in names if data_suffix(name) in TYPE_OF_SUFFIX]
    chosen = chosen or [name for name in names if "." not in name]
    if not chosen:
        raise DataError(f"{folder}: no data files in this directory; {_content(folder)}")
    return [os.path.join(folder, name) for name in sorted(chosen)]


def _data_file(path: str) -> DataFile:
    try:
        with open(path, "rb"):
            return DataFile(path, os.path.getsize(path))
    except PermissionError as error:
        raise DataError(f"{path}: no permission to read this file") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error


def _missing(path: str) -> DataError:
    """A missing path, explained at the first part of it that does not exist."""
    missing = Path(path)
    while not missing.parent.exists():
        missing = missing.parent
    what = "no such file or directory" if missing == Path(path) else f"no such directory as {missing}"
    near = nearest_name(missing.name, _names(str(missing.parent)))
    guess = f"did you mean '{missing.parent / near}'?" if near else _content(str(missing.parent))
    return DataError(f"{path}: {what}; {guess}")


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _content(folder: str) -> str:
    if not os.path.isdir(folder):
        return f"there is no directory {folder}"
    names = _names(folder)
    if not names:
        return f"{folder} is empty"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{folder} holds {', '.join(names[:_SHOWN])}{more}"
