"""The samples of one batch file as bytes, some at a time."""

import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.sizes import MIB
from penstock.store.batch_file.files import load_batch, read_array, read_header
from penstock.store.batch_file.values import Values
from penstock.store.damage import DamagedFile
from penstock.store.merge.source.batches import Batches, unreadable

Rows = NDArray[np.uint8]
"""Samples of one array as bytes: (samples, bytes of a sample)."""

BUFFER_BYTES = MIB
"""Read at a time: small enough to be in the processor's cache when its checksum is taken."""
SMALL_FILE_BYTES = 4 * MIB
"""A file of no more is read at once: a call for each of many small arrays takes longer."""


class BatchReader:
    """Reads the arrays of a batch file, each from its first sample to its last, and checks them on the way.

    What lies in the file as it is comes through one buffer of a few megabytes. What is compressed is decoded as a
    whole, and kept until another array is asked for, or with `keep_decoded` until the end.
    """

    def __init__(self, batches: Batches, batch: int, keep_decoded: bool = False) -> None:
        self.path: Path = batches.paths[batch]
        self.num_samples = int(batches.num_samples[batch])
        self._batches, self._batch, self._keep_decoded = batches, batch, keep_decoded
        self._file_bytes = int(batches.file_bytes[batch])
        self._offsets: list[int] = batches.offsets[batch].tolist()
        self._is_copyable: list[bool] = batches.is_copyable[batch].tolist()
        self._buffer = np.empty(0, np.uint8)
        self._checksums: dict[int, int] = {}
        self._decoded: dict[int, Rows] = {}
        batches.check_unchanged(batch)
        try:
            self._source = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def pieces(self, column: int) -> Iterator[memoryview]:
        """All bytes of an array, in order; each piece stays until the next is asked for."""
        if not self._is_copyable[column]:
            yield self._decode(column).reshape(-1).data
            return
        num_bytes = self.num_samples * self._batches.row_bytes[column]
        for start in range(0, num_bytes, BUFFER_BYTES):
            yield self._read(column, start, min(BUFFER_BYTES, num_bytes - start)).data

    def read_all(self) -> None:
        """Look at all values, so that what is damaged is told at the end."""
        for column in range(len(self._offsets)):
            for _ in self.pieces(column):
                pass

    def chunk_rows(self, column: int) -> int:
        """How many samples of an array to read at a time."""
        return max(1, BUFFER_BYTES // max(1, self._batches.row_bytes[column]))

    def rows(self, column: int, first: int, count: int) -> Rows:
        """The next samples of an array; they stay until more are asked for."""
        if not self._is_copyable[column]:
            return self._decode(column)[first : first + count]
        row_bytes = self._batches.row_bytes[column]
        return self._read(column, first * row_bytes, count * row_bytes).reshape(count, row_bytes)

    def _read(self, column: int, start: int, num_bytes: int) -> Rows:
        """Bytes of an array as they lie in the file, on top of the checksum of those before."""
        content = self._at(self._offsets[column] + start, num_bytes)
        self._checksums[column] = zlib.crc32(content.data, self._checksums.get(column, 0))
        return content

    def _at(self, offset: int, num_bytes: int) -> Rows:
        """Bytes of the file; a small one is read at once, when its first bytes are asked for."""
        if self._file_bytes <= SMALL_FILE_BYTES:
            if not len(self._buffer):
                self._buffer = np.empty(self._file_bytes, np.uint8)
                self._fill(self._buffer.data, 0)
            return self._buffer[offset : offset + num_bytes]
        if len(self._buffer) < num_bytes:
            self._buffer = np.empty(num_bytes, np.uint8)
        self._fill(self._buffer[:num_bytes].data, offset)
        return self._buffer[:num_bytes]

    def checksum(self, column: int) -> int:
        """Of all samples of an array, after the last was read."""
        if not self._is_copyable[column]:
            return zlib.crc32(self._decode(column).data)
        return self._checksums.get(column, 0)

    def _fill(self, content: memoryview, offset: int) -> None:
        while content:
            try:
                count = os.preadv(self._source, [content], offset)
            except OSError as error:
                raise unreadable(self.path, error) from error
            if not count:
                raise DamagedFile(f"{self.path}: ends before the last of its arrays")
            content, offset = content[count:], offset + count

    def _check(self, column: int, crc: int) -> None:
        expected = int(self._batches.checksums[self._batch, column])
        if expected != crc:
            raise DamagedFile(
                f"{self.path}: array '{self._batches.schema.arrays[column].name}' is damaged: its checksum is "
                f"{crc:08x}, not {expected:08x}",
                "write the file again",
            )

    def _decode(self, column: int) -> Rows:
        if column not in self._decoded:
            if self._batches.is_pickled[self._batch]:
                self._decode_pickled()
                return self._decoded[column]
            if not self._keep_decoded:
                self._decoded.clear()
            header = read_header(self.path)
            values = read_array(header, header.array(self._batches.schema.arrays[column].name))
            self._decoded[column] = _as_rows(values)
        return self._decoded[column]

    def _decode_pickled(self) -> None:
        """Samples of old come all at once."""
        schema = self._batches.schema
        arrays = load_batch(self.path, allow_pickle=True, schema=schema)
        self._decoded = {column: _as_rows(arrays[spec.name]) for column, spec in enumerate(schema.arrays)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                for column, crc in self._checksums.items():
                    self._check(column, crc)
        finally:
            os.close(self._source)


def _as_rows(values: Values) -> Rows:
    row_bytes = values.itemsize * math.prod(values.shape[1:])
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(len(values), row_bytes)
