"""The rows of a stream in the order of random keys, through temporary files, inside a number of bytes."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.prep.rewrite.buckets import KEY_BITS, KEY_COLUMN, KEY_FIELD, MOST_BUCKETS, Bucket, BucketFiles
from penstock.readers.sequence import derive_generator


@dataclass(frozen=True, slots=True)
class ShuffleSizes:
    """What the shuffle may hold."""

    bucket_bytes: int
    """A larger bucket is scattered again before it is loaded."""
    waiting_bytes: int
    """Rows that wait to be written to buckets."""
    piece_rows: int
    """Rows that are taken at a time."""


class ExternalShuffle:
    """Sorts rows by keys drawn from a seed. `folder` is for temporary files, which go as they are used up."""

    def __init__(self, folder: Path, schema: pa.Schema, seed: int, sizes: ShuffleSizes) -> None:
        self._folder = folder
        self._schema = schema.append(KEY_FIELD)
        self._keys = derive_generator("rewrite", seed).bit_generator
        self._sizes = sizes
        self._names = count()

    def scatter(self, batches: Iterable[pa.RecordBatch], expected_bytes: int) -> list[Bucket]:
        """The first pass: row i of the stream gets the i-th key, and goes to the bucket of its leading bits."""
        return self._scatter((self._with_keys(batch) for batch in batches), 0, expected_bytes)

    def gather(self, buckets: Iterable[Bucket]) -> Iterator[pa.RecordBatch]:
        """The second pass: the rows of the buckets in the order of their keys, equal keys in that of the data."""
        for bucket in buckets:
            is_large = bucket.num_bytes > self._sizes.bucket_bytes
            if is_large and bucket.num_rows > 1 and bucket.prefix_bits < KEY_BITS:
                yield from self.gather(self._scatter_again(bucket))
            elif bucket.num_rows:
                yield from self._sorted(bucket)
            else:
                bucket.remove()

    def close(self) -> None:
        """Remove what is left of the temporary files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _with_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys = self._keys.random_raw(batch.num_rows)
        return batch.append_column(KEY_FIELD, pa.array(keys, pa.uint64()))

    def _scatter_again(self, bucket: Bucket) -> list[Bucket]:
        smaller = self._scatter(bucket.batches(), bucket.prefix_bits, bucket.num_bytes)
        bucket.remove()
        return smaller

    def _scatter(
        self, batches: Iterable[pa.RecordBatch], prefix_bits: int, expected_bytes: int
    ) -> list[Bucket]:
        num_bits = min(_bits_for(expected_bytes, self._sizes.bucket_bytes), KEY_BITS - prefix_bits)
        self._folder.mkdir(exist_ok=True)
        folder = self._folder / f"{next(self._names):05d}"
        with BucketFiles(folder, self._schema, prefix_bits, num_bits, self._sizes.waiting_bytes) as files:
            for batch in batches:
                for start in range(0, batch.num_rows, self._sizes.piece_rows):
                    files.add(batch.slice(start, self._sizes.piece_rows))
        return files.buckets

    def _sorted(self, bucket: Bucket) -> Iterator[pa.RecordBatch]:
        """A bucket is loaded, and its file removed, before the first of its rows is given out."""
        pa.default_memory_pool().release_unused()
        rows = _joined(list(bucket.batches()))
        bucket.remove()
        order = np.argsort(rows.column(KEY_COLUMN).to_numpy(), kind="stable")
        rows = rows.drop_columns([KEY_COLUMN])
        for start in range(0, len(order), self._sizes.piece_rows):
            yield rows.take(order[start : start + self._sizes.piece_rows])


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch: Arrow draws from one chunk ten times faster than from several.

    The list is emptied, and columns are joined one by one, so that parts are freed as early as they can be.
    """
    schema = pieces[0].schema
    columns = [[piece.column(index) for piece in pieces] for index in range(len(schema))]
    pieces.clear()
    joined = []
    for parts in columns:
        joined.append(pa.concat_arrays(parts))
        parts.clear()
    return pa.RecordBatch.from_arrays(joined, schema=schema)


def _bits_for(num_bytes: int, bucket_bytes: int) -> int:
    """How many leading bits tell buckets of about three quarters of the allowed size."""
    num_buckets = -(-num_bytes * 4 // (3 * max(1, bucket_bytes)))
    return min(max(0, num_buckets - 1).bit_length(), MOST_BUCKETS.bit_length() - 1)
