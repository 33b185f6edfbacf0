"""Where bytes come from: a local file, or a file in an object store."""

import os
from collections.abc import Iterable

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.remote_file import RemoteFile
from penstock.readers.stores import connect, explained
from penstock.readers.uris import Uri, is_uri


class StoreFile(pa.PythonFile):
    """An open file of a store."""

    def __init__(self, remote: RemoteFile, mode: str) -> None:
        super().__init__()  # type: ignore[call-arg] # Arrow's classes take their arguments when they are made
        self.remote = remote


def open_input(path: str) -> pa.NativeFile:
    """A file that can be read from any offset; `read_at(num_bytes, offset)` moves nothing.

    A file in an object store is read in few large requests, and says what is wrong by itself: whoever reads it
    gets a DataError that names the store's problem.
    """
    if is_uri(path):
        return _open_remote(path)
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


def hold(source: pa.NativeFile, ranges: Iterable[tuple[int, int]]) -> None:
    """Fetch ranges (offset, number of bytes) of a file of a store, and keep them until others are held.

    The caller leases the bytes. A local file has everything at hand.
    """
    if isinstance(source, StoreFile):
        source.remote.hold(ranges)


def _open_remote(path: str) -> pa.NativeFile:
    filesystem, name = connect(Uri.parse(path))
    with explained(path):
        source = filesystem.open_input_file(name)
        return StoreFile(RemoteFile(path, source, source.size()), mode="r")
