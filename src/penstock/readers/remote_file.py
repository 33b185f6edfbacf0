"""Reading a file of an object store in few large requests, in bounded memory.

A request to a store takes tens of milliseconds whatever it asks for, and Arrow asks for a few kilobytes at a time, of
many columns by turns. So every place where reading goes on in one direction has a window of bytes (`windows.py`), and
each next window there is twice as large, as operating systems do for disks. Who knows what will be read can hold it:
one request for neighbours, and reads inside cost nothing.
"""

import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from penstock.config.sizes import KIB, MIB
from penstock.readers.stores import explained
from penstock.readers.windows import WINDOWS, Window, Windows

FIRST_WINDOW_BYTES = 256 * KIB
MOST_WINDOW_BYTES = 4 * MIB
_MOST_GAP_BYTES = 64 * KIB
"""Held ranges with a smaller gap between them come in one request: the gap costs less than another request..."""
_MOST_REQUEST_BYTES = 8 * MIB
"""...unless it grows so large that several requests at once are faster."""
_MOST_AT_ONCE = 8


class RemoteFile(io.RawIOBase):
    """A file of a store, as Python files are; Arrow reads it through `pa.PythonFile`."""

    def __init__(self, path: str, source: pa.NativeFile, size_bytes: int, windows: Windows = WINDOWS) -> None:
        self._path = path
        self._source = source
        self._size_bytes = size_bytes
        self._windows = windows
        self._held: tuple[Window, ...] = ()
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is read."""
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}
        self._position = max(0, starts[whence] + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """The next bytes; fewer only at the end of the file."""
        end = self._size_bytes if size < 0 else min(self._size_bytes, self._position + size)
        parts = []
        while self._position < end:
            parts.append(self._part(self._position, end))
            self._position += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def hold(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch ranges (offset, number of bytes) and keep them until others are held; the caller leases them."""
        self._held = ()
        joined = _joined(ranges)
        with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
            self._held = tuple(pool.map(lambda place: Window(place[0], self._request(*place)), joined))

    def close(self) -> None:
        """Let go of all bytes and of the connection."""
        if not self.closed:
            self._held = ()
            self._windows.forget(id(self))
            self._source.close()
        super().close()

    def _part(self, offset: int, end: int) -> bytes:
        """Some of the bytes from an offset on, at least one."""
        for held in self._held:
            if held.start <= offset < held.end:
                return held.data[offset - held.start : end - held.start]
        window = self._windows.find(id(self), offset)
        if window is None or window.end == offset:
            if end - offset >= MOST_WINDOW_BYTES:
                return self._request(offset, end - offset)
            fresh = self._next_window(offset, end, window)
            self._windows.put(id(self), fresh, instead=window)
            window = fresh
        return window.data[offset - window.start : end - window.start]

    def _next_window(self, offset: int, end: int, before: Window | None) -> Window:
        """The bytes from an offset on; at the end of the file those before it too: footers are read backwards."""
        if before is None and end == self._size_bytes:
            start = max(0, min(offset, end - FIRST_WINDOW_BYTES))
            return Window(start, self._request(start, end - start))
        ahead_bytes = FIRST_WINDOW_BYTES if before is None else 2 * len(before.data)
        num_bytes = max(end - offset, min(ahead_bytes, MOST_WINDOW_BYTES))
        return Window(offset, self._request(offset, num_bytes))

    def _request(self, offset: int, num_bytes: int) -> bytes:
        with explained(self._path):
            num_bytes = min(num_bytes, self._size_bytes - offset)
            data = self._source.read_at(num_bytes, offset)  # type: ignore[call-arg] # the stubs know no offset
            if not data:
                raise OSError(f"ended at byte {offset}, but had {self._size_bytes} when it was opened")
            return data


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges (offset, number of bytes) with neighbours in one.

    >>> _joined([(1000, 10), (0, 900), (5_000_000, 10)])
    [(0, 1010), (5000000, 10)]
    """
    joined: list[tuple[int, int]] = []
    for start, num_bytes in sorted(ranges):
        first, joined_bytes = joined[-1] if joined else (start, 0)
        together_bytes = max(joined_bytes, start + num_bytes - first)
        is_near = start <= first + joined_bytes + _MOST_GAP_BYTES
        if joined and is_near and together_bytes <= _MOST_REQUEST_BYTES:
            joined[-1] = (first, together_bytes)
        else:
            joined.append((start, num_bytes))
    return joined
