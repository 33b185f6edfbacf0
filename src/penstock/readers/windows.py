"""The bytes that open files of stores have read ahead, all together inside one limit."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from penstock.config.sizes import MIB

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


_Key = tuple[int, int]
"""The file, by a number of its own, and where the window starts."""


class Windows:
    """The windows of all open files; the one that was not used for longest goes first."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._windows: OrderedDict[_Key, Window] = OrderedDict()
        self._lock = threading.Lock()
        self.held_bytes = 0
        """Bytes of all of them."""

    def find(self, owner: int, offset: int) -> Window | None:
        """The window of a file that holds the byte at an offset, or that ends right before it."""
        with self._lock:
            key = self._key_at(owner, offset)
            if key is None:
                return None
            self._windows.move_to_end(key)
            return self._windows[key]

    def put(self, owner: int, window: Window, instead: Window | None) -> None:
        """Keep a window, in the place of one that has been read to its end."""
        with self._lock:
            if instead is not None:
                self._drop((owner, instead.start))
            key = owner, window.start
            self._drop(key)
            self._windows[key] = window
            self.held_bytes += len(window.data)
            while self.held_bytes > self._limit_bytes:
                self._drop(next(iter(self._windows)))

    def forget(self, owner: int) -> None:
        """Let go of all windows of a file."""
        with self._lock:
            for key in [key for key in self._windows if key[0] == owner]:
                self._drop(key)

    def _key_at(self, owner: int, offset: int) -> _Key | None:
        ends_here: _Key | None = None
        for key, window in self._windows.items():
            if key[0] == owner and window.start <= offset <= window.end:
                if offset < window.end:
                    return key
                ends_here = key
        return ends_here

    def _drop(self, key: _Key) -> None:
        window = self._windows.pop(key, None)
        if window is not None:
            self.held_bytes -= len(window.data)


WINDOWS = Windows(ALL_WINDOWS_BYTES)
"""The windows of this process."""
