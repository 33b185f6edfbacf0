"""The text of a file from any offset, whether it is compressed or not."""

import os

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.readers.files import COMPRESSIONS, DataFile
from penstock.readers.storage import open_input
from penstock.readers.uris import path_name

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some programs begin UTF-8 text with it."""


def is_compressed(file: DataFile) -> bool:
    """Whether the text can only be read from its start."""
    return _codec(file) is not None


class TextFile:
    """The decompressed text of one file.

    A plain file is read at any offset. A compressed one is decompressed from its start: reading on is cheap, and
    so is going back to where the last reading began; anything earlier starts over.
    """

    def __init__(self, file: DataFile) -> None:
        self.file = file
        codec = _codec(file)
        self._source: _Plain | _Decompressed = _Plain(file) if codec is None else _Decompressed(file, codec)

    def read(self, offset: int, num_bytes: int) -> bytes:
        """The text from an offset on; shorter than asked for only at its end."""
        try:
            return self._source.read(offset, num_bytes)
        except OSError as error:
            raise DataError(f"{self.file.path}: cannot be read to its end, it is damaged: {error}") from error

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._source.close()


class _Plain:
    """A file as it is."""

    def __init__(self, file: DataFile) -> None:
        self._opened = open_input(file.path)

    def read(self, offset: int, num_bytes: int) -> bytes:
        return self._opened.read_at(num_bytes, offset)  # type: ignore[call-arg]

    def close(self) -> None:
        self._opened.close()


class _Decompressed:
    """A decompressing stream that remembers the text it gave last."""

    def __init__(self, file: DataFile, codec: str) -> None:
        self._path = file.path
        self._codec = codec
        self._start_over()

    def _start_over(self) -> None:
        self._stream = pa.CompressedInputStream(open_input(self._path), self._codec)  # type: ignore[arg-type]
        self._last_offset, self._last = 0, b""

    def close(self) -> None:
        self._stream.close()

    def read(self, offset: int, num_bytes: int) -> bytes:
        if offset < self._last_offset:
            self.close()
            self._start_over()
        known = self._last[offset - self._last_offset :]
        if len(known) >= num_bytes:
            return known[:num_bytes]
        at = self._last_offset + len(self._last)
        self._last_offset, self._last = offset, b""
        self._skip(offset - at)
        self._last = known + self._next(num_bytes - len(known))
        return self._last

    def _skip(self, num_bytes: int) -> None:
        while num_bytes > 0 and (skipped := self._stream.read(min(num_bytes, MIB))):
            num_bytes -= len(skipped)

    def _next(self, num_bytes: int) -> bytes:
        text: bytes = self._stream.read(num_bytes)
        while len(text) < num_bytes and (more := self._stream.read(num_bytes - len(text))):
            text += more
        return text


def _codec(file: DataFile) -> str | None:
    return COMPRESSIONS.get(os.path.splitext(path_name(file.path).lower())[1])
