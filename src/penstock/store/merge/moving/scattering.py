"""The first half of a shuffle: samples go to their buckets."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.store.merge.layouts.targets import Targets
from penstock.store.merge.moving.buckets import KEY_BYTES, SCATTERED_NAME, Buckets, bucket_numbers
from penstock.store.merge.plan import MergePlan
from penstock.store.merge.source.reading import BatchReader


def scatter(plan: MergePlan, buckets: Buckets, folder: Path, part: int) -> None:
    """Write the samples of a part to their buckets, as many at a time as fit into the memory."""
    most_rows = max(1, plan.process_bytes // 2 // buckets.record_bytes)
    with Targets(folder) as targets:
        waiting = Waiting(buckets, part, targets, min(most_rows, _num_samples(plan, buckets.parts[part])))
        for batch in buckets.parts[part]:
            with BatchReader(plan.batches, batch, keep_decoded=True) as reader:
                _scatter_batch(plan, buckets, batch, reader, waiting)
        waiting.write()


def _num_samples(plan: MergePlan, batches: range) -> int:
    return int(plan.batches.num_samples[batches.start : batches.stop].sum())


def _scatter_batch(
    plan: MergePlan, buckets: Buckets, batch: int, reader: BatchReader, waiting: "Waiting"
) -> None:
    keys = buckets.keys.of_rows(int(plan.first_rows[batch]), reader.num_samples)
    numbers = bucket_numbers(plan, batch, keys, buckets.bits)
    first = 0
    while first < reader.num_samples:
        room = waiting.room(reader.num_samples - first)
        span = slice(first, first + len(room))
        room[:, :KEY_BYTES] = keys[span].view(np.uint8).reshape(len(room), KEY_BYTES)
        position = KEY_BYTES
        for column in plan.columns:
            rows = reader.rows(column, first, len(room))
            room[:, position : position + rows.shape[1]] = rows
            position += rows.shape[1]
        waiting.add(numbers[span])
        first += len(room)


class Waiting:
    """Records on their way to their buckets: when their room is full, all are written."""

    def __init__(self, buckets: Buckets, part: int, targets: Targets, most_rows: int) -> None:
        self._buckets, self._targets = buckets, targets
        self._next = buckets.starts[part].copy()
        self._records = np.empty((most_rows, buckets.record_bytes), np.uint8)
        self._numbers = np.empty(most_rows, np.int64)
        self._filled = 0

    def room(self, count: int) -> NDArray[np.uint8]:
        """Room for at most so many records, to be filled."""
        if self._filled == len(self._records):
            self.write()
        return self._records[self._filled : self._filled + count]

    def add(self, numbers: NDArray[np.int64]) -> None:
        """Keep the records that the room was filled with, and their buckets."""
        self._numbers[self._filled : self._filled + len(numbers)] = numbers
        self._filled += len(numbers)

    def write(self) -> None:
        """Write all records, those of a bucket at once."""
        numbers = self._numbers[: self._filled]
        order = np.argsort(numbers, kind="stable")
        found, counts = np.unique(numbers, return_counts=True)
        for bucket, end, count in zip(found, np.cumsum(counts), counts, strict=True):
            records = self._records[order[end - count : end]]
            position = int(self._next[bucket]) * self._buckets.record_bytes
            self._targets.write_bytes(SCATTERED_NAME, records.reshape(-1).data, position)
            self._next[bucket] += len(records)
        self._filled = 0
