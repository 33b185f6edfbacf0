"""Rows in the order of 64-bit keys, through temporary files, inside a number of bytes.

Keys are the caller's: random ones make a shuffle that depends on the rows, their order and the seed alone, not on the
memory. The first pass scatters rows over buckets by the leading bits of their keys; the second loads one bucket at a
time, sorts it, and gives its rows out. Equal keys stay in the order of the data.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
KEY_BYTES = 8
TEMPORARY_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
"""What other threads allocate stays with them when it is freed, and counts on."""
_KEY_FIELD = pa.field("__key__", pa.uint64(), nullable=False)
_KEY_BITS = 64
_MAX_BUCKETS = 256
"""Files that are open at once, and pieces into which what waits is divided."""


@dataclass(frozen=True, slots=True)
class ShuffleSizes:
    bucket_bytes: int
    """A larger bucket is scattered again before it is loaded."""
    waiting_bytes: int
    """Rows that wait to be written to buckets."""
    piece_rows: int


@dataclass(slots=True)
class Bucket:
    """One temporary file: the rows whose keys have the same `prefix_bits` leading bits, in the order of the data."""

    path: Path
    prefix_bits: int
    num_rows: int = 0
    num_bytes: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows with their keys, piece by piece as they were written."""
        with (
            pa.OSFile(str(self.path), "rb") as source,
            pa.ipc.open_stream(source, options=_ONE_THREAD) as stream,
        ):
            yield from stream


class ExternalShuffle:
    """Sorts rows by keys. `folder` is for temporary files, which go as they are used up."""

    def __init__(self, folder: Path, schema: pa.Schema, sizes: ShuffleSizes) -> None:
        self._folder, self._schema, self._sizes = folder, schema.append(_KEY_FIELD), sizes
        self._names = count()

    def scatter(self, keyed: Iterable[tuple[pa.RecordBatch, Keys]], expected_bytes: int) -> list[Bucket]:
        """The first pass: rows with their keys, about `expected_bytes` in all, go to buckets."""
        batches = (batch.append_column(_KEY_FIELD, pa.array(keys, pa.uint64())) for batch, keys in keyed)
        return self._scatter(batches, 0, expected_bytes)

    def gather(self, buckets: Iterable[Bucket]) -> Iterator[pa.RecordBatch]:
        """The second pass: the rows of the buckets in the order of their keys, without them."""
        for bucket in buckets:
            is_large = bucket.num_bytes > self._sizes.bucket_bytes
            if is_large and bucket.num_rows > 1 and bucket.prefix_bits < _KEY_BITS:
                smaller = self._scatter(bucket.batches(), bucket.prefix_bits, bucket.num_bytes)
                bucket.path.unlink()
                yield from self.gather(smaller)
            elif bucket.num_rows:
                yield from self._sorted(bucket)
            else:
                bucket.path.unlink()

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _scatter(
        self, batches: Iterable[pa.RecordBatch], prefix_bits: int, expected_bytes: int
    ) -> list[Bucket]:
        """Rows wait until they are `waiting_bytes`, then all of them are written to their buckets."""
        # Buckets of about three quarters of the allowed size.
        num_buckets = -(-expected_bytes * 4 // (3 * max(1, self._sizes.bucket_bytes)))
        num_bits = min(max(0, num_buckets - 1).bit_length(), _MAX_BUCKETS.bit_length() - 1)
        num_bits = min(num_bits, _KEY_BITS - prefix_bits)
        folder = self._folder / f"{next(self._names):05d}"
        folder.mkdir(parents=True)
        paths = [folder / f"{index:05d}.arrows" for index in range(1 << num_bits)]
        buckets = [Bucket(path, prefix_bits + num_bits) for path in paths]
        waiting: list[list[pa.RecordBatch]] = [[] for _ in buckets]
        waiting_bytes = 0
        with ExitStack() as files:
            sinks = [files.enter_context(pa.OSFile(str(path), "wb")) for path in paths]
            writers = [
                files.enter_context(pa.ipc.new_stream(sink, self._schema, options=TEMPORARY_OPTIONS))
                for sink in sinks
            ]

            def write_waiting() -> None:
                for bucket, writer, pieces in zip(buckets, writers, waiting, strict=True):
                    if pieces:
                        piece: Any = pa.concat_batches(pieces)  # type: ignore[attr-defined]
                        pieces.clear()
                        writer.write_batch(piece)
                        bucket.num_rows += piece.num_rows
                        bucket.num_bytes += piece.nbytes

            for batch in batches:
                for start in range(0, batch.num_rows, self._sizes.piece_rows):
                    piece = batch.slice(start, self._sizes.piece_rows)
                    numbers = bucket_numbers(piece.column(_KEY_FIELD.name).to_numpy(), prefix_bits, num_bits)
                    rows = piece.take(np.argsort(numbers, kind="stable"))
                    ends = np.cumsum(np.bincount(numbers, minlength=len(buckets))).tolist()
                    for index, (first, end) in enumerate(pairwise([0, *ends])):
                        if first < end:
                            waiting[index].append(rows.slice(first, end - first))
                    waiting_bytes += rows.nbytes
                    if waiting_bytes >= self._sizes.waiting_bytes:
                        write_waiting()
                        waiting_bytes = 0
            write_waiting()
        return buckets

    def _sorted(self, bucket: Bucket) -> Iterator[pa.RecordBatch]:
        """A bucket is loaded, and its file removed, before the first of its rows is given out."""
        pa.default_memory_pool().release_unused()
        pieces = list(bucket.batches())
        schema = pieces[0].schema
        # One batch: Arrow draws from one chunk ten times faster than from several. Columns are joined one by one, so
        # that parts are freed as early as they can be.
        columns = [[piece.column(index) for piece in pieces] for index in range(len(schema))]
        pieces.clear()
        joined = []
        for parts in columns:
            joined.append(pa.concat_arrays(parts))
            parts.clear()
        bucket.path.unlink()
        order = np.argsort(joined[-1].to_numpy(), kind="stable")
        rows = pa.RecordBatch.from_arrays(joined[:-1], schema=schema.remove(len(schema) - 1))
        del joined
        for start in range(0, len(order), self._sizes.piece_rows):
            yield rows.take(order[start : start + self._sizes.piece_rows])


def bucket_numbers(keys: Keys, from_bits: int, num_bits: int) -> NDArray[np.uint16]:
    """The bits of each key from `from_bits` on, counted from the front.

    >>> bucket_numbers(np.array([0b1011 << 60], np.uint64), 1, 2).tolist()
    [1]
    """
    if not num_bits:
        return np.zeros(len(keys), np.uint16)
    shifted = keys >> np.uint64(_KEY_BITS - from_bits - num_bits)
    return (shifted & np.uint64((1 << num_bits) - 1)).astype(np.uint16)
