"""The simple way for small data: everything in memory, then written. The bytes are those of the other way."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.store.merge.layouts.targets import PartChecksums, Targets
from penstock.store.merge.places.keys import ORDER, KeyStream
from penstock.store.merge.plan import MergePlan
from penstock.store.merge.source.reading import BatchReader, Rows


def accumulate_batches(plan: MergePlan, folder: Path) -> PartChecksums:
    """Write all samples; the memory it takes is twice that of the largest array."""
    splits = np.concatenate([plan.split_numbers(batch) for batch in range(len(plan.batches))])
    chosen = [_in_order(plan, np.flatnonzero(splits == split)) for split in range(len(plan.splitter.names))]
    with Targets(folder) as targets:
        for column in plan.columns:
            whole = np.concatenate([_read(plan, batch, column) for batch in range(len(plan.batches))])
            for name, rows in zip(plan.splitter.names, chosen, strict=True):
                place = plan.places[name, plan.batches.schema.arrays[column].name]
                targets.write(place, 0, whole[rows])
    return targets.checksums


def _in_order(plan: MergePlan, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if not plan.options.shuffle:
        return rows
    keys = KeyStream(ORDER, plan.options.seed).of_rows(0, plan.batches.total_samples)
    return rows[np.argsort(keys[rows])]


def _read(plan: MergePlan, batch: int, column: int) -> Rows:
    with BatchReader(plan.batches, batch) as reader:
        return reader.rows(column, 0, reader.num_samples)
