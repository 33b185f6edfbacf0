"""Where bytes come from: a local file, or a file in an object store through pyarrow.fs; and which files a store has.

A request to a store takes tens of milliseconds whatever it asks for, and Arrow asks for a few kilobytes at a time, of
many columns by turns. So small reads go through blocks that all open files of the process keep inside one limit. Who
knows what will be read can hold it: one request for neighbours, and reads inside cost nothing.
"""

import glob
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pa_fs

from penstock.config.errors import DataError, hint, nearest_name
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import (
    DataFile,
    Uri,
    check_one_split,
    choose_data_files,
    describe_content,
    head_folders,
    is_partition,
    is_uri,
)

ALL_BLOCKS_BYTES = 16 * MIB  # what all open files of stores hold together
_BLOCK_BYTES = 256 * KIB
_MAX_GAP_BYTES = 64 * KIB
"""Held ranges with a smaller gap between them come in one request: the gap costs less than another request..."""
_MAX_REQUEST_BYTES = 8 * MIB  # ...unless it grows so large that several requests at once are faster
_MAX_REQUESTS_AT_ONCE = 8

CONNECT_TIMEOUT_SECONDS = 5.0
TIMEOUT_SECONDS = 10.0  # a request during which no byte comes for so long is given up
MAX_ATTEMPTS = 4
"""Of each request, with growing pauses, when the store cannot be reached or says that it is busy."""
_ANY_FOLDERS = "**"
_DEFAULT_REGION = "us-east-1"
"""Where a store has an address of its own, the region is only a word in signatures."""
_S3_OPTIONS = {"endpoint_override", "scheme", "region", "anonymous"}
_REASONS = {
    "NO_SUCH_BUCKET": "there is no such bucket",
    "Bucket not found": "there is no such bucket",
    "ACCESS_DENIED": "access is denied; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or ~/.aws/credentials) to "
    "keys that may list and read it",
    "INVALID_ACCESS_KEY_ID": "the store does not know this key; check AWS_ACCESS_KEY_ID",
    "SIGNATURE_DOES_NOT_MATCH": "the store refuses the signature; check AWS_SECRET_ACCESS_KEY and the region",
    "curlCode: 6,": "the name of the store cannot be resolved; check the endpoint (AWS_ENDPOINT_URL or "
    "?endpoint_override=) and the network",
    "curlCode: 7,": "the store cannot be reached; check the endpoint (AWS_ENDPOINT_URL or ?endpoint_override=) and "
    "the network",
    "curlCode: 28,": f"the store does not answer (waited {TIMEOUT_SECONDS:.0f} seconds, {MAX_ATTEMPTS} times); check "
    "the endpoint and the network, then continue with --resume",
}
"""What the errors of S3 and of the network mean to a user."""


def open_input(path: str) -> pa.NativeFile:
    """A file that can be read from any offset; reads of a store raise a DataError that names its problem."""
    if is_uri(path):
        filesystem, name = connect(Uri.parse(path))
        with explained(path):
            source = filesystem.open_input_file(name)
            return RemoteStream(RemoteFile(path, source, source.size()), mode="r")
    try:
        return pa.OSFile(path, "rb")
    except PermissionError as error:
        raise DataError(f"{path}: no permission to read this file") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise DataError(f"{path}: cannot be opened: {reason}") from error


def read_at(source: pa.NativeFile, num_bytes: int, offset: int) -> bytes:
    """Bytes of an open file from an offset on; fewer only at its end. A damaged file may ask for the impossible."""
    if num_bytes < 0 or offset < 0:
        raise ValueError(f"a range of {num_bytes} bytes from {offset} on")
    num_bytes = min(num_bytes, source.size() - offset)
    if num_bytes <= 0:
        return b""
    return source.read_at(num_bytes, offset)  # type: ignore[call-arg] # the stubs know no offset


class RemoteFile(io.RawIOBase):
    """A file of a store, as Python files are; Arrow reads it through `pa.PythonFile`."""

    def __init__(self, path: str, source: pa.NativeFile, size_bytes: int) -> None:
        self._path = path
        self._source = source
        self._size_bytes = size_bytes
        self._held: tuple[tuple[int, bytes], ...] = ()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}
        self._position = max(0, starts[whence] + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size_bytes if size < 0 else min(self._size_bytes, self._position + size)
        parts = []
        while self._position < end:
            offset = self._position
            held = [part for part in self._held if part[0] <= offset < part[0] + len(part[1])]
            if held:
                start, data = held[0]
            elif end - offset >= _BLOCK_BYTES:
                start, data = offset, self.request(offset, end - offset)
            else:
                # Blocks are counted from the end of the file: there are footers, of any length up to a block.
                block_end = self._size_bytes - (self._size_bytes - 1 - offset) // _BLOCK_BYTES * _BLOCK_BYTES
                start = max(0, block_end - _BLOCK_BYTES)
                data = _block(self, start, block_end - start)
            parts.append(data[offset - start : end - start])
            self._position += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def hold(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch ranges (offset, bytes), near ones in one request, and keep them; the caller leases the bytes."""
        self._held = ()
        joined: list[tuple[int, int]] = []
        for start, num_bytes in sorted(ranges):
            first, joined_bytes = joined[-1] if joined else (start, 0)
            together_bytes = max(joined_bytes, start + num_bytes - first)
            is_near = start <= first + joined_bytes + _MAX_GAP_BYTES
            if joined and is_near and together_bytes <= _MAX_REQUEST_BYTES:
                joined[-1] = (first, together_bytes)
            else:
                joined.append((start, num_bytes))
        with ThreadPoolExecutor(_MAX_REQUESTS_AT_ONCE) as pool:
            self._held = tuple(pool.map(lambda part: (part[0], self.request(*part)), joined))

    def close(self) -> None:
        if not self.closed:
            self._held = ()
            self._source.close()
        super().close()

    def request(self, offset: int, num_bytes: int) -> bytes:
        with explained(self._path):
            data = read_at(self._source, min(num_bytes, self._size_bytes - offset), offset)
            if not data:
                raise OSError(f"ended at byte {offset}, but had {self._size_bytes} when it was opened")
            return data


@lru_cache(maxsize=ALL_BLOCKS_BYTES // _BLOCK_BYTES)
def _block(remote: RemoteFile, offset: int, num_bytes: int) -> bytes:
    """A block of an open file; that of any file which was not used for longest goes first."""
    return remote.request(offset, num_bytes)


class RemoteStream(pa.PythonFile):
    def __init__(self, remote: RemoteFile, mode: str) -> None:
        super().__init__()  # type: ignore[call-arg] # Arrow's classes take their arguments when they are made
        self.remote = remote


# Connections.


def connect(uri: Uri) -> tuple[pa_fs.FileSystem, str]:
    """The file system of a URI, and the path of its key there. Connections are made once and kept."""
    filesystem, root = _connected(uri.root, *s3_endpoint_and_region())
    return filesystem, f"{root.rstrip('/')}/{uri.key}" if uri.key else root


def s3_endpoint_and_region(environment: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
    """As the usual variables say, the more special name first. Arrow finds keys by itself, but not where S3 is."""
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    return endpoint or None, environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None


@lru_cache(maxsize=32)
def _connected(root: str, endpoint_url: str | None, region: str | None) -> tuple[pa_fs.FileSystem, str]:
    uri = Uri.parse(root)
    options = uri.options
    with explained(root):
        if uri.scheme in ("gs", "gcs") and "retry_limit_seconds" not in options:
            # Google's client tries for a quarter of an hour unless it has a limit.
            limit = f"retry_limit_seconds={MAX_ATTEMPTS * TIMEOUT_SECONDS:.0f}"
            uri = replace(uri, query="&".join(filter(None, [uri.query, limit])))
        if uri.scheme != "s3":
            return pa_fs.FileSystem.from_uri(str(uri))
        for name in options.keys() - _S3_OPTIONS:
            raise DataError(f"{uri}: has the unknown option '{name}'; {hint(name, _S3_OPTIONS)}")
        # The options of the path, then what the environment says, then what the bucket says of itself.
        address = options.get("endpoint_override") or endpoint_url or ""
        endpoint = urlsplit(address if not address or "://" in address else f"//{address}")
        address = f"{endpoint.netloc}{endpoint.path.rstrip('/')}"
        region = options.get("region") or region
        scheme: Any = options.get("scheme") or endpoint.scheme or "https"
        filesystem = pa_fs.S3FileSystem(
            endpoint_override=address or None,
            scheme=scheme,
            region=region or (_DEFAULT_REGION if address else pa_fs.resolve_s3_region(uri.authority)),
            anonymous=options.get("anonymous", "false").lower() in ("", "1", "true"),
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            request_timeout=TIMEOUT_SECONDS,
            retry_strategy=pa_fs.AwsStandardS3RetryStrategy(max_attempts=MAX_ATTEMPTS),
        )
        return filesystem, uri.authority


@contextmanager
def explained(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except PermissionError as error:
        raise DataError(f"{path}: no permission to read this file") from error
    except (pa.ArrowException, OSError) as error:
        text = str(error)
        line = (text.splitlines() or ["unknown error"])[0].partition(" (Request ID")[0]
        known = [reason for mark, reason in _REASONS.items() if mark in text]
        raise DataError(f"{path}: {known[0] if known else f'cannot be read: {line}'}") from error


# Listing: one key, everything under a prefix, or a glob.


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
    check_one_split(str(folder), files)
    folders = {info.base_name: uri for uri, info in entries if info.type is pa_fs.FileType.Directory}
    found = [files[name] for name in choose_data_files(files)]
    inner = head_folders(files, folders) if found else filter(is_partition, folders)
    found += [file for name in inner for file in _files_in(folders[name])]
    if not found:
        raise DataError(f"{folder}: no data files in this directory; {_content(folder, entries)}")
    return found


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
