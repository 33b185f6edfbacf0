"""Where the samples of a shuffle wait: buckets by the leading bits of their random numbers.

All buckets lie behind each other in one temporary file. Since anybody can work out the number of any sample, what each
bucket gets is counted before, and every sample has its place in the file before it is written: parts can be written in
any order, by any process, and again after a kill.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import ConfigError
from penstock.config.sizes import format_size
from penstock.store.merge.places.keys import ORDER, Keys, KeyStream
from penstock.store.merge.plan import MOST_PARTS, MergePlan

SCATTERED_NAME = ".scattered"
KEY_BYTES = 8
"""In front of each record: its random number. Then come the bytes of all arrays."""
_KEY_BITS = 64
_MOST_BITS = 20
_MOST_PART_BITS = MOST_PARTS.bit_length() - 1
_MOST_SCATTER_PARTS = 64
"""Parts have a table of all buckets each: there are few, however large the data."""
_LEAST_RECORDS = 64
"""With room for fewer, chance would fill some bucket beyond it."""


@dataclass(frozen=True)
class Buckets:
    """Which records of the temporary file belong to which bucket."""

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

    def split(self, bucket: int) -> int:
        """To which split its samples belong."""
        return bucket >> self.bits

    def first_row(self, bucket: int) -> int:
        """Which sample of its split the first one of a bucket is."""
        return self.bounds(bucket)[0] - self.bounds(self.split(bucket) << self.bits)[0]


def plan_buckets(plan: MergePlan) -> Buckets:
    """As few buckets as there can be, if each, with all its arrays, is to fit into half of a process's memory."""
    keys, parts = KeyStream(ORDER, plan.options.seed), _parts(plan)
    record_bytes = KEY_BYTES + plan.schema.row_bytes
    limit_bytes = plan.process_bytes // 2
    most_bytes = max(plan.split_counts.values(), default=0) * record_bytes
    part_bits = min(_bits_for(most_bytes, plan.options.part_bytes), _MOST_PART_BITS)
    first_bits = max(part_bits, _bits_for(most_bytes * 5 // 4, limit_bytes))
    for bits in range(first_bits, _MOST_BITS + 1):
        if _table_bytes(plan, parts, bits) > limit_bytes:
            break
        counts = _counts(plan, keys, parts, bits)
        totals = counts.sum(axis=0)
        if totals.max(initial=0) * record_bytes <= limit_bytes:
            ends = np.cumsum(totals)
            starts = np.cumsum(counts, axis=0) - counts + (ends - totals)
            return Buckets(keys, bits, part_bits, parts, starts, ends, record_bytes)
    enough_bytes = min(
        max(_table_bytes(plan, parts, bits), 2 * most_bytes >> bits, _LEAST_RECORDS * record_bytes)
        for bits in range(part_bits, _MOST_BITS + 1)
    )
    raise _too_little(plan, most_bytes, 2 * enough_bytes * plan.options.workers)


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


def _table_bytes(plan: MergePlan, parts: tuple[range, ...], bits: int) -> int:
    """What `Buckets.starts` takes."""
    return len(parts) * (len(plan.splitter.names) << bits) * 8


def _counts(plan: MergePlan, keys: KeyStream, parts: tuple[range, ...], bits: int) -> NDArray[np.int64]:
    """How many samples of each part go to each bucket."""
    num_buckets = len(plan.splitter.names) << bits
    counts = np.zeros((len(parts), num_buckets), np.int64)
    for part, batches in enumerate(parts):
        for batch in batches:
            first, count = int(plan.first_rows[batch]), int(plan.batches.num_samples[batch])
            numbers = bucket_numbers(plan, batch, keys.of_rows(first, count), bits)
            counts[part] += np.bincount(numbers, minlength=num_buckets)
    return counts


def bucket_numbers(plan: MergePlan, batch: int, keys: Keys, bits: int) -> NDArray[np.int64]:
    """The bucket of each sample of a batch, from their random numbers."""
    leading = (
        (keys >> np.uint64(_KEY_BITS - bits)).astype(np.int64) if bits else np.zeros(len(keys), np.int64)
    )
    leading += np.asarray(plan.splitter.numbers(batch), np.int64) << bits
    return leading


def _too_little(plan: MergePlan, most_bytes: int, enough_bytes: int) -> ConfigError:
    held_bytes, workers = plan.options.memory_bytes, plan.options.workers
    return ConfigError.at(
        "memory.limit",
        f"leaves {format_size(held_bytes)} to the shuffle (memory_bytes), but for {format_size(most_bytes)} in "
        f"{workers} {'process' if workers == 1 else 'processes'} it takes {format_size(enough_bytes)}; raise it, or "
        "lower merge_workers",
    )
