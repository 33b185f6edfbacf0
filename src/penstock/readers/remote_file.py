"""Reading a file of an object store in few large requests, in bounded memory.

A request to a store takes tens of milliseconds whatever it asks for, and Arrow asks for a few kilobytes at a time, of
many columns by turns. So every place where reading goes on in one direction has a window of bytes, and each next
window there is twice as large, as operating systems do for disks. All windows of the process together are bounded;
the one that was not used for longest goes first.
"""

import io
import threading
from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa

from penstock.config.sizes import KIB, MIB
from penstock.readers.stores import explained

FIRST_WINDOW_BYTES = 256 * KIB
MOST_WINDOW_BYTES = 4 * MIB
ALL_WINDOWS_BYTES = 16 * MIB
"""What all open files of stores hold together."""


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes of one file, from an offset on."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.start + len(self.data)


class Windows:
    """The windows of all open files."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._windows: OrderedDict[tuple[int, int], Window] = OrderedDict()
        self.held_bytes = 0
        """Bytes of all of them."""
        self._lock = threading.Lock()

    def find(self, owner: int, offset: int) -> Window | None:
        """The window of a file that holds the byte at an offset, or that ends right before it."""
        with self._lock:
            found: tuple[int, int] | None = None
            for key, window in self._windows.items():
                if key[0] == owner and window.start <= offset <= window.end:
                    found = key
                    if offset < window.end:
                        break
            if found is None:
                return None
            self._windows.move_to_end(found)
            return self._windows[found]

    def put(self, owner: int, window: Window, instead: Window | None) -> None:
        """Keep a window, in the place of one that has been read to its end."""
        with self._lock:
            if instead is not None:
                self._drop((owner, instead.start))
            self._drop((owner, window.start))
            self._windows[owner, window.start] = window
            self.held_bytes += len(window.data)
            while self.held_bytes > self._limit_bytes:
                self._drop(next(iter(self._windows)))

    def forget(self, owner: int) -> None:
        """Let go of all windows of a file."""
        with self._lock:
            for key in [key for key in self._windows if key[0] == owner]:
                self._drop(key)

    def _drop(self, key: tuple[int, int]) -> None:
        window = self._windows.pop(key, None)
        if window is not None:
            self.held_bytes -= len(window.data)


_WINDOWS = Windows(ALL_WINDOWS_BYTES)


class RemoteFile(io.RawIOBase):
    """A file of a store, as Python files are; Arrow reads it through `pa.PythonFile`."""

    def __init__(
        self, path: str, source: pa.NativeFile, size_bytes: int, windows: Windows = _WINDOWS
    ) -> None:
        self._path = path
        self._source = source
        self._size_bytes = size_bytes
        self._windows = windows
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

    def close(self) -> None:
        """Let go of the windows and of the connection."""
        if not self.closed:
            self._windows.forget(id(self))
            self._source.close()
        super().close()

    def _part(self, offset: int, end: int) -> bytes:
        """Some of the bytes from an offset on, at least one."""
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
