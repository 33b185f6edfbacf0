"""Pass 2: the samples of batch files go to their offsets in the files of a store, in order or in a random one.

In random order, samples are scattered to buckets on disk, and each bucket is sorted in memory and written. A bucket
has the samples whose random numbers have the same leading bits. All buckets lie one after the other in one temporary
file. Since anybody can compute the number of any sample, what each bucket gets is counted before, and every sample
has its offset in the file before it is written: tasks can run in any order, in any process, and again after a kill.
"""

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import ConfigError
from penstock.config.sizes import format_size
from penstock.prep.merge.batches import BUFFER_BYTES, BatchReader, Rows
from penstock.prep.merge.layouts import Extents, Wrote
from penstock.prep.merge.plan import MAX_PARTS, Keys, MergePlan
from penstock.runtime.checksums import joined_checksum

if TYPE_CHECKING:  # Arrow takes 40 MB: only those who write its files pay for it
    from penstock.prep.merge.arrow_parts import PartFiles

SCATTERED_NAME = ".scattered"

_RECORD_KEY_BYTES = 8
"""In front of each record: its random number. Then come the bytes of all arrays."""
_KEY_BITS = 64
_MAX_BITS = 20
_MAX_PART_BITS = MAX_PARTS.bit_length() - 1
_MAX_SCATTER_PARTS = 64
"""Parts have a table of all buckets each: there are few, however large the data."""
_MIN_RECORDS = 64
"""With less memory, chance would fill some bucket beyond it."""


class StretchWriter:
    """Writes one stretch of each array of a store, from a first row on, front to back, and takes its checksum."""

    def __init__(self, folder: Path, extents: Extents, first_rows: Mapping[str, int]) -> None:
        self._folder, self._extents, self._first_rows = folder, extents, first_rows
        self._open: dict[str, int] = {}
        self.wrote: Wrote = {}

    def write(self, split: str, columns: Mapping[str, Rows]) -> None:
        for array, rows in columns.items():
            self.append(split, array, rows)

    def append(self, split: str, array: str, rows: Rows, checksum: int | None = None) -> None:
        """Write the next samples of an array; their checksum is taken where it is not known."""
        extent = self._extents[split, array]
        num_bytes, crc = self.wrote.get((split, array), (0, 0))
        content = rows.reshape(-1).data
        offset = extent.offset + self._first_rows[split] * extent.array.row_bytes + num_bytes
        if extent.file not in self._open:
            self._open[extent.file] = os.open(self._folder / extent.file, os.O_WRONLY)
        write_at(self._open[extent.file], content, offset)
        crc = zlib.crc32(content, crc) if checksum is None else joined_checksum(crc, checksum, len(content))
        self.wrote[split, array] = num_bytes + len(content), crc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)


def write_at(descriptor: int, content: memoryview, offset: int) -> None:
    while len(content):
        count = os.pwrite(descriptor, content, offset)
        content, offset = content[count:], offset + count


def copy_batches(plan: MergePlan, writer: StretchWriter, chosen: range) -> None:
    """Write all samples of some batches; holds a buffer, and one array where it must be decoded."""
    names = plan.splitter.names
    for batch in chosen:
        numbers = plan.splitter.numbers(batch)
        with BatchReader(plan.batches, batch) as reader:
            for column, array in plan.columns:
                for first, rows in reader.chunks(column):
                    if isinstance(numbers, int):
                        writer.append(names[numbers], array, rows, reader.last_checksum)
                        continue
                    for split, name in enumerate(names):
                        is_chosen = numbers[first : first + len(rows)] == split
                        writer.append(name, array, rows[np.flatnonzero(is_chosen)])


@dataclass(frozen=True)
class Buckets:
    bits: int
    part_bits: int
    """Of a task of the second half: these do not depend on the memory, so that tasks do not."""
    parts: tuple[range, ...]
    """Batches that are scattered at a time."""
    starts: NDArray[np.int64]
    """For each part and bucket, the record at which its samples begin; buckets of the first split come first."""
    ends: NDArray[np.int64]
    """For each bucket, the record after its last."""
    record_bytes: int

    @property
    def num_bytes(self) -> int:
        return int(self.ends[-1]) * self.record_bytes

    def bounds(self, bucket: int) -> tuple[int, int]:
        return int(self.starts[0, bucket]), int(self.ends[bucket])

    def split(self, bucket: int) -> int:
        return bucket >> self.bits

    def first_row(self, bucket: int) -> int:
        """The position in its split of the first sample of a bucket."""
        return self.bounds(bucket)[0] - self.bounds(self.split(bucket) << self.bits)[0]


def plan_buckets(plan: MergePlan) -> Buckets:
    """As few buckets as there can be, if each, with all its arrays, is to fit into half of a process's memory."""
    parts = list(plan.parts())
    step = max(1, -(-len(parts) // _MAX_SCATTER_PARTS))
    scattered = tuple(
        range(parts[first].start, parts[min(first + step, len(parts)) - 1].stop)
        for first in range(0, len(parts), step)
    )
    record_bytes = _RECORD_KEY_BYTES + plan.schema.row_bytes
    limit_bytes = plan.process_bytes // 2
    largest_bytes = max(plan.split_counts.values(), default=0) * record_bytes
    part_bits = min(_bits_for(largest_bytes, plan.options.part_bytes), _MAX_PART_BITS)

    def table_bytes(bits: int) -> int:
        return len(scattered) * (len(plan.splitter.names) << bits) * 8

    for bits in range(max(part_bits, _bits_for(largest_bytes * 5 // 4, limit_bytes)), _MAX_BITS + 1):
        if table_bytes(bits) > limit_bytes:
            break
        counts = np.zeros((len(scattered), len(plan.splitter.names) << bits), np.int64)
        for part, batches in enumerate(scattered):
            for batch in batches:
                numbers = _bucket_numbers(plan, batch, plan.order_numbers(batch), bits)
                counts[part] += np.bincount(numbers, minlength=counts.shape[1])
        totals = counts.sum(axis=0)
        if totals.max(initial=0) * record_bytes <= limit_bytes:
            ends = np.cumsum(totals)
            starts = np.cumsum(counts, axis=0) - counts + (ends - totals)
            return Buckets(bits, part_bits, scattered, starts, ends, record_bytes)
    enough_bytes = min(
        max(table_bytes(bits), 2 * largest_bytes >> bits, _MIN_RECORDS * record_bytes)
        for bits in range(part_bits, _MAX_BITS + 1)
    )
    held_bytes, workers = plan.options.memory_bytes, plan.options.workers
    raise ConfigError.at(
        "memory.limit",
        f"leaves {format_size(held_bytes)} to the shuffle (memory_bytes), but for {format_size(largest_bytes)} in "
        f"{workers} {'process' if workers == 1 else 'processes'} it takes {format_size(2 * enough_bytes * workers)}; "
        "raise it, or lower merge_workers",
    )


def _bits_for(num_bytes: int, bucket_bytes: int) -> int:
    """How many leading bits make buckets of about that size."""
    return max(0, -(-num_bytes // bucket_bytes) - 1).bit_length()


def _bucket_numbers(plan: MergePlan, batch: int, keys: Keys, bits: int) -> NDArray[np.int64]:
    leading = np.zeros(len(keys), np.int64)
    if bits:
        leading = (keys >> np.uint64(_KEY_BITS - bits)).astype(np.int64)
    leading += np.asarray(plan.splitter.numbers(batch), np.int64) << bits
    return leading


def scatter(plan: MergePlan, buckets: Buckets, folder: Path, part: int) -> None:
    """Write the samples of a part to their buckets, as many at a time as fit into the memory."""
    chosen = buckets.parts[part]
    num_samples = int(plan.batches.num_samples[chosen.start : chosen.stop].sum())
    max_rows = max(1, min(plan.process_bytes // 2 // buckets.record_bytes, num_samples))
    records = np.empty((max_rows, buckets.record_bytes), np.uint8)
    numbers = np.empty(max_rows, np.int64)
    next_record = buckets.starts[part].copy()
    filled = 0
    target = os.open(folder / SCATTERED_NAME, os.O_WRONLY)

    def flush() -> None:
        order = np.argsort(numbers[:filled], kind="stable")
        found, counts = np.unique(numbers[:filled], return_counts=True)
        for bucket, end, count in zip(found, np.cumsum(counts), counts, strict=True):
            content = records[order[end - count : end]].reshape(-1).data
            write_at(target, content, int(next_record[bucket]) * buckets.record_bytes)
            next_record[bucket] += count

    try:
        for batch in chosen:
            keys = plan.order_numbers(batch)
            batch_numbers = _bucket_numbers(plan, batch, keys, buckets.bits)
            with BatchReader(plan.batches, batch, keep_decoded=True) as reader:
                first = 0
                while first < reader.num_samples:
                    count = min(reader.num_samples - first, max_rows - filled)
                    free, span = records[filled : filled + count], slice(first, first + count)
                    free[:, :_RECORD_KEY_BYTES] = keys[span].view(np.uint8).reshape(count, _RECORD_KEY_BYTES)
                    position = _RECORD_KEY_BYTES
                    for column, _ in plan.columns:
                        rows = reader.rows(column, first, count)
                        free[:, position : position + rows.shape[1]] = rows
                        position += rows.shape[1]
                    numbers[filled : filled + count] = batch_numbers[span]
                    filled, first = filled + count, first + count
                    if filled == max_rows:
                        flush()
                        filled = 0
        flush()
    finally:
        os.close(target)


def gather(
    plan: MergePlan, buckets: Buckets, folder: Path, writer: "StretchWriter | PartFiles", bucket: int
) -> None:
    """Sort the samples of a bucket, and write them; nothing of it is held afterwards."""
    first, end = buckets.bounds(bucket)
    record_bytes = buckets.record_bytes
    num_bytes = (end - first) * record_bytes
    content = np.fromfile(folder / SCATTERED_NAME, np.uint8, num_bytes, offset=first * record_bytes)
    records = content.reshape(end - first, record_bytes)
    order = np.argsort(records[:, :_RECORD_KEY_BYTES].copy().view(np.uint64).reshape(-1))
    step = max(1, BUFFER_BYTES // record_bytes)
    for start in range(0, len(order), step):
        rows = records[order[start : start + step]]
        columns, position = {}, _RECORD_KEY_BYTES
        for column, array in plan.columns:
            row_bytes = plan.batches.row_bytes[column]
            columns[array] = rows[:, position : position + row_bytes]
            position += row_bytes
        writer.write(plan.splitter.names[buckets.split(bucket)], columns)
