"""Where bytes come from: a local file, or a file in an object store through pyarrow.fs.

A request to a store takes tens of milliseconds whatever it asks for, and Arrow asks for a few kilobytes at a time, of
many columns by turns. So small reads go through blocks that all open files of the process keep inside one limit. Who
knows what will be read can hold it: one request for neighbours, and reads inside cost nothing.
"""

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pa_fs

from penstock.config.errors import DataError, hint
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import Uri, is_uri

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
            return StoreFile(RemoteFile(path, source, source.size()), mode="r")
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


class StoreFile(pa.PythonFile):
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
