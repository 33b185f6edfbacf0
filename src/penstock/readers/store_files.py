"""Listing the files of an object store: one key, everything under a prefix, or a glob."""

import glob
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import pyarrow.fs as pa_fs

from penstock.config.errors import DataError, nearest_name
from penstock.readers.files import (
    DataFile,
    Uri,
    check_one_split,
    choose_data_files,
    describe_content,
    head_folders,
)
from penstock.readers.storage import connect, explained

_ANY_FOLDERS = "**"


def list_store(uri: Uri) -> list[DataFile]:
    uri = uri.at(uri.key.rstrip("/"))
    found = _info(uri)
    if found.type is pa_fs.FileType.File:
        return [DataFile(str(uri), found.size)]
    if found.type is pa_fs.FileType.Directory:
        return _files_in(uri)
    if _info(uri.at("")).type is pa_fs.FileType.NotFound:
        raise DataError(f"{uri}: there is no {uri.at('')}, or these keys may not see it")
    if glob.has_magic(uri.key):
        return _matches(uri)
    raise _missing(uri)


def list_folder(uri: Uri) -> list[DataFile] | None:
    """All files of a folder, of whatever kind, but for hidden ones; None where it is no folder."""
    uri = uri.at(uri.key.rstrip("/"))
    if _info(uri).type is not pa_fs.FileType.Directory:
        return None
    entries = [(str(entry), info) for entry, info in _entries(uri) if _is_file(info)]
    return [DataFile(path, info.size) for path, info in entries if info.base_name[0] not in "._"]


def object_version(path: str) -> bytes:
    """What is another when an object was written again: its ETag, or where a store has none, when that was."""
    filesystem, name = connect(Uri.parse(path))
    with explained(path), filesystem.open_input_file(name) as source:
        known = dict(source.metadata() or {})
        return known.get("ETag") or str(filesystem.get_file_info(name).mtime_ns).encode()


def _info(uri: Uri) -> pa_fs.FileInfo:
    filesystem, path = connect(uri)
    with explained(str(uri)):
        return filesystem.get_file_info(path)


def _entries(folder: Uri, recursive: bool = False) -> list[tuple[Uri, pa_fs.FileInfo]]:
    """What is under a prefix, sorted by key; nothing where there is no such prefix."""
    filesystem, path = connect(folder)
    _, root = connect(folder.at(""))
    with explained(str(folder)):
        selector = pa_fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        infos = filesystem.get_file_info(selector)
    found = ((folder.at(info.path[len(root) :].strip("/")), info) for info in infos)
    return sorted(found, key=lambda entry: entry[0].key)


def _files_in(folder: Uri) -> list[DataFile]:
    entries = _entries(folder)
    files = {info.base_name: DataFile(str(uri), info.size) for uri, info in entries if _is_file(info)}
    chosen = choose_data_files(files)
    if not chosen:
        raise DataError(f"{folder}: no data files in this directory; {_content(folder, entries)}")
    check_one_split(str(folder), files)
    folders = {info.base_name: uri for uri, info in entries if info.type is pa_fs.FileType.Directory}
    inner = [file for name in head_folders(files, folders) for file in _files_in(folders[name])]
    return [files[name] for name in chosen] + inner


def _is_file(info: pa_fs.FileInfo) -> bool:
    """Stores keep empty keys that end in a slash, to show a folder."""
    return info.type is pa_fs.FileType.File and bool(info.base_name)


def _matches(pattern: Uri) -> list[DataFile]:
    files: list[DataFile] = []
    for uri, info in _matching(pattern.at(""), pattern.key.split("/")):
        if _is_file(info):
            files.append(DataFile(str(uri), info.size))
        elif info.type is pa_fs.FileType.Directory:
            files += _files_in(uri)
    if not files:
        parts = pattern.key.split("/")
        first_glob = next(index for index, part in enumerate(parts) if glob.has_magic(part))
        folder = pattern.at("/".join(parts[:first_glob]))
        raise DataError(f"{pattern}: matches nothing; {_content(folder, _entries(folder))}")
    return files


def _matching(folder: Uri, parts: list[str]) -> Iterator[tuple[Uri, pa_fs.FileInfo]]:
    """Level by level, so that only folders that can match are listed; `**` lists everything below at once."""
    while len(parts) > 1 and not glob.has_magic(parts[0]):
        folder, parts = _below(folder, parts[0]), parts[1:]
    is_recursive = parts[0] == _ANY_FOLDERS
    for uri, info in _entries(folder, is_recursive):
        names = uri.key[len(folder.key) :].strip("/").split("/")
        if is_recursive:
            if _is_file(info) and _fits(names, parts):
                yield uri, info
        elif _fits(names, parts[:1]):
            if len(parts) == 1:
                yield uri, info
            elif info.type is pa_fs.FileType.Directory:
                yield from _matching(uri, parts[1:])


def _fits(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether the parts of a path fit those of a glob; hidden names fit only a pattern that begins as they do.

    >>> _fits(["a", "b", "c.csv"], ["**", "*.csv"]), _fits(["a", "c.csv"], ["*.csv"])
    (True, False)
    """
    if not patterns or not names:
        return not names and all(pattern == _ANY_FOLDERS for pattern in patterns)
    if patterns[0] == _ANY_FOLDERS:
        return any(_fits(names[skipped:], patterns[1:]) for skipped in range(len(names) + 1))
    is_shown = not names[0].startswith(".") or patterns[0].startswith(".")
    return is_shown and fnmatchcase(names[0], patterns[0]) and _fits(names[1:], patterns[1:])


def _missing(uri: Uri) -> DataError:
    known, (missing, *below) = uri.at(""), uri.key.split("/")
    while below and _info(_below(known, missing)).type is not pa_fs.FileType.NotFound:
        known, (missing, *below) = _below(known, missing), below
    entries = _entries(known)
    near = nearest_name(missing, [info.base_name for _, info in entries])
    guess = f"did you mean '{_below(known, near)}'?" if near else _content(known, entries)
    what = f"no such directory as {missing}" if below else "no such file or directory"
    return DataError(f"{uri}: {what}; {guess}")


def _content(folder: Uri, entries: list[tuple[Uri, pa_fs.FileInfo]]) -> str:
    names = [info.base_name for _, info in entries]
    return describe_content(str(folder), [name for name in names if name[:1] not in ("", ".")])


def _below(folder: Uri, name: str) -> Uri:
    return folder.at(f"{folder.key}/{name}" if folder.key else name)
