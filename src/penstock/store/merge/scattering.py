"""The first half of a shuffle: samples go to buckets by the leading bits of their random numbers.

All buckets lie behind each other in one temporary file. Since anybody can work out the number of any sample, what each
bucket gets is counted before, and every sample has its place in the file before it is written: parts can be written in
any order, by any process, and again after a kill.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import ConfigError
from penstock.config.sizes import format_size
from penstock.store.merge.keys import ORDER, KeyStream
from penstock.store.merge.plan import MOST_PARTS, MergePlan
from penstock.store.merge.reading import BatchReader
from penstock.store.merge.targets import Targets

SCATTERED_NAME = ".scattered"
KEY_BYTES = 8
"""In front of each record: its random number. Then come the bytes of all arrays."""
_KEY_BITS = 64
_MOST_BITS = 20
_MOST_PART_BITS = MOST_PARTS.bit_length() - 1
_MOST_SCATTER_PARTS = 64
"""Parts have a table of all buckets each: there are few, however large the data."""


@dataclass(frozen=True)
class Buckets:
    """Where the samples of a shuffle wait, and how many."""

    keys: KeyStream
    bits: int
    part_bits: int
    """Of a part of the second half: these do not depend on the memory, so that parts do not."""
    parts: tuple[range, ...]
    """Batches that are scattered at a time."""
    starts: NDArray[np.int64]
    """For each part and bucket, the record at which its samples begin; buckets of the first split come first."""
    ends: NDArray[np.int64]
    """For each bucket, the record behind its last."""
    record_bytes: int

    @property
    def num_buckets(self) -> int:
        """Of all splits."""
        return len(self.ends)

    @property
    def num_bytes(self) -> int:
        """Of the temporary file."""
        return int(self.ends[-1]) * self.record_bytes

    def bounds(self, bucket: int) -> tuple[int, int]:
        """The first record of a bucket, and the one behind its last."""
        return int(self.starts[0, bucket]), int(self.ends[bucket])


def plan_buckets(plan: MergePlan) -> Buckets:
    """As few buckets as there can be, if each, with all its arrays, is to fit into a process's share of the memory."""
    keys = KeyStream(ORDER, plan.options.seed)
    parts = _parts(plan)
    record_bytes = KEY_BYTES + plan.schema.row_bytes
    limit_bytes = plan.process_bytes // 2
    most_bytes = max(plan.split_counts.values(), default=0) * record_bytes
    part_bits = min(_bits_for(most_bytes, plan.options.part_bytes), _MOST_PART_BITS)
    bits = max(part_bits, _bits_for(most_bytes * 5 // 4, limit_bytes))
    while bits <= _MOST_BITS:
        if len(parts) * (len(plan.splitter.names) << bits) * 8 > limit_bytes:
            break
        counts = _counts(plan, keys, parts, bits)
        if counts.sum(axis=0).max(initial=0) * record_bytes <= limit_bytes:
            ends = np.cumsum(counts.sum(axis=0))
            before = np.cumsum(counts, axis=0) - counts
            return Buckets(
                keys, bits, part_bits, parts, before + (ends - counts.sum(axis=0)), ends, record_bytes
            )
        bits += 1
    raise ConfigError.at(
        "memory_bytes",
        f"is {format_size(plan.options.memory_bytes)}, which is too little to shuffle "
        f"{format_size(most_bytes)} with {plan.options.workers} processes; raise it (in a run file memory.limit), or "
        "take fewer processes",
    )


def _bits_for(num_bytes: int, bucket_bytes: int) -> int:
    """How many leading bits tell buckets of about that size."""
    return max(0, -(-num_bytes // bucket_bytes) - 1).bit_length()


def _parts(plan: MergePlan) -> tuple[range, ...]:
    """As in a merge without a shuffle, but larger where they would be many."""
    parts = list(plan.parts())
    step = -(-len(parts) // _MOST_SCATTER_PARTS)
    return tuple(
        range(parts[first].start, parts[min(first + step, len(parts)) - 1].stop)
        for first in range(0, len(parts), max(1, step))
    )


def _counts(plan: MergePlan, keys: KeyStream, parts: tuple[range, ...], bits: int) -> NDArray[np.int64]:
    """How many samples of each part go to each bucket."""
    num_buckets = len(plan.splitter.names) << bits
    counts = np.zeros((len(parts), num_buckets), np.int64)
    for part, batches in enumerate(parts):
        for batch in batches:
            first, count = int(plan.first_rows[batch]), int(plan.batches.num_samples[batch])
            numbers = _bucket_numbers(plan, batch, keys.of_rows(first, count), bits)
            counts[part] += np.bincount(numbers, minlength=num_buckets)
    return counts


def _bucket_numbers(plan: MergePlan, batch: int, keys: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    leading = (
        (keys >> np.uint64(_KEY_BITS - bits)).astype(np.int64) if bits else np.zeros(len(keys), np.int64)
    )
    leading += np.asarray(plan.splitter.numbers(batch), np.int64) << bits
    return leading


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
    numbers = _bucket_numbers(plan, batch, keys, buckets.bits)
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
