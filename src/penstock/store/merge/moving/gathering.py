"""The second half of a shuffle: each bucket is loaded, brought into the order of its random numbers, and written."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.store.merge.layouts.targets import PartChecksums, Targets
from penstock.store.merge.moving.buckets import KEY_BYTES, SCATTERED_NAME, Buckets
from penstock.store.merge.plan import MergePlan
from penstock.store.merge.source.reading import BUFFER_BYTES, Rows


def gather_parts(buckets: Buckets) -> Iterator[range]:
    """Buckets in order, some at a time: those of a part have the same first bits, however many buckets there are."""
    step = 1 << (buckets.bits - buckets.part_bits)
    for first in range(0, buckets.num_buckets, step):
        yield range(first, first + step)


def gather(plan: MergePlan, buckets: Buckets, folder: Path, chosen: range) -> PartChecksums:
    """Write the samples of some buckets to their places."""
    with Targets(folder) as targets:
        for bucket in chosen:
            _gather_bucket(plan, buckets, folder, bucket, targets)
    return targets.checksums


def _gather_bucket(plan: MergePlan, buckets: Buckets, folder: Path, bucket: int, targets: Targets) -> None:
    split, first_row = plan.splitter.names[buckets.split(bucket)], buckets.first_row(bucket)
    records, order = load_bucket(folder, buckets, bucket)
    position = KEY_BYTES
    for column in plan.columns:
        spec = plan.batches.schema.arrays[column]
        values = records[:, position : position + spec.row_bytes]
        for done, rows in _in_order(values, order):
            targets.write(plan.places[split, spec.name], first_row + done, rows)
        position += spec.row_bytes


def load_bucket(folder: Path, buckets: Buckets, bucket: int) -> tuple[Rows, NDArray[np.int64]]:
    """The records of a bucket, and the order in which they belong."""
    first, end = buckets.bounds(bucket)
    num_bytes = (end - first) * buckets.record_bytes
    content = np.fromfile(folder / SCATTERED_NAME, np.uint8, num_bytes, offset=first * buckets.record_bytes)
    records = content.reshape(end - first, buckets.record_bytes)
    return records, np.argsort(records[:, :KEY_BYTES].copy().view(np.uint64).reshape(-1))


def _in_order(values: Rows, order: NDArray[np.int64]) -> Iterator[tuple[int, Rows]]:
    """Rows in an order, some at a time, each time with how many came before."""
    step = max(1, BUFFER_BYTES // max(1, values.shape[1]))
    for first in range(0, len(order), step):
        yield first, values[order[first : first + step]]
