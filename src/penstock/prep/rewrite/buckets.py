"""Temporary files that hold rows whose keys begin alike."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

KEY_COLUMN = "__key__"
KEY_FIELD = pa.field(KEY_COLUMN, pa.uint64(), nullable=False)
KEY_BITS = 64
MOST_BUCKETS = 256
"""Files that are open at once, and pieces into which what waits is divided."""
TEMPORARY_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
"""What other threads allocate stays with them when it is freed, and counts on."""


@dataclass(slots=True)
class Bucket:
    """One temporary file: the rows whose keys have the same `prefix_bits` leading bits, in the order of the data."""

    path: Path
    prefix_bits: int
    num_rows: int = 0
    num_bytes: int = 0
    """In memory."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows with their keys, piece by piece as they were written."""
        with (
            pa.OSFile(str(self.path), "rb") as source,
            pa.ipc.open_stream(source, options=_ONE_THREAD) as stream,
        ):
            yield from stream

    def remove(self) -> None:
        """Give the room on disk back."""
        os.unlink(self.path)


def bucket_numbers(keys: NDArray[np.uint64], from_bits: int, num_bits: int) -> NDArray[np.uint16]:
    """The bits of each key from `from_bits` on, counted from the front.

    >>> bucket_numbers(np.array([0, 1 << 63, (1 << 64) - 1], np.uint64), 0, 2).tolist()
    [0, 2, 3]
    """
    if not num_bits:
        return np.zeros(len(keys), np.uint16)
    shifted = keys >> np.uint64(KEY_BITS - from_bits - num_bits)
    return (shifted & np.uint64((1 << num_bits) - 1)).astype(np.uint16)


class BucketFiles:
    """Rows on their way to 2**num_bits files: they wait until they are `most_waiting_bytes`, then all are written."""

    def __init__(
        self, folder: Path, schema: pa.Schema, prefix_bits: int, num_bits: int, most_waiting_bytes: int
    ) -> None:
        self.buckets = [
            Bucket(folder / f"{index:05d}.arrows", prefix_bits + num_bits) for index in range(1 << num_bits)
        ]
        self._prefix_bits, self._num_bits = prefix_bits, num_bits
        self._most_waiting_bytes = most_waiting_bytes
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in self.buckets]
        self._waiting_bytes = 0
        self._files = ExitStack()
        folder.mkdir()
        self._writers = [self._open(bucket, schema) for bucket in self.buckets]

    def add(self, batch: pa.RecordBatch) -> None:
        """Let rows, whose last column is the key, wait for their files."""
        numbers = bucket_numbers(batch.column(KEY_COLUMN).to_numpy(), self._prefix_bits, self._num_bits)
        rows = batch.take(np.argsort(numbers, kind="stable"))
        ends = np.cumsum(np.bincount(numbers, minlength=len(self.buckets))).tolist()
        for index, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if start < end:
                self._waiting[index].append(rows.slice(start, end - start))
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= self._most_waiting_bytes:
            self._write_waiting()

    def _write_waiting(self) -> None:
        for bucket, writer, pieces in zip(self.buckets, self._writers, self._waiting, strict=True):
            if pieces:
                self._write(bucket, writer, pieces)
                pieces.clear()
        self._waiting_bytes = 0

    def _write(
        self, bucket: Bucket, writer: pa.ipc.RecordBatchStreamWriter, pieces: Sequence[pa.RecordBatch]
    ) -> None:
        piece: pa.RecordBatch = pa.concat_batches(pieces)  # type: ignore[attr-defined]
        writer.write_batch(piece)
        bucket.num_rows += piece.num_rows
        bucket.num_bytes += piece.nbytes

    def _open(self, bucket: Bucket, schema: pa.Schema) -> pa.ipc.RecordBatchStreamWriter:
        sink = self._files.enter_context(pa.OSFile(str(bucket.path), "wb"))
        return self._files.enter_context(pa.ipc.new_stream(sink, schema, options=TEMPORARY_OPTIONS))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._write_waiting()
        finally:
            self._waiting.clear()
            self._files.close()
