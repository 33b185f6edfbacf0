"""Where a sample of the batch files is in the store, for a few samples at a time."""

import numpy as np
from numpy.typing import NDArray

from penstock.store.merge.places.keys import ORDER, KeyStream
from penstock.store.merge.plan import MergePlan

Places = NDArray[np.int64]


def places_of_rows(plan: MergePlan, rows: NDArray[np.int64]) -> tuple[Places, Places]:
    """The split of each of some samples, by its number, and which of its samples it is.

    All samples are looked at once, batch by batch; nothing is kept of them.
    """
    splits = np.zeros(len(rows), np.int64)
    positions = np.zeros(len(rows), np.int64)
    batch_of = np.searchsorted(plan.first_rows, rows, side="right") - 1
    for batch in np.unique(batch_of):
        chosen = np.flatnonzero(batch_of == batch)
        numbers = plan.split_numbers(int(batch))
        for place in chosen:
            row = int(rows[place] - plan.first_rows[batch])
            splits[place] = numbers[row]
            before = np.count_nonzero(numbers[:row] == numbers[row])
            positions[place] = plan.starts[batch, numbers[row]] + before
    if plan.options.shuffle:
        positions = _shuffled(plan, rows, splits)
    return splits, positions


def _shuffled(plan: MergePlan, rows: NDArray[np.int64], splits: Places) -> Places:
    """How many samples of the same split have a lower random number."""
    keys = KeyStream(ORDER, plan.options.seed)
    wanted = keys.at_rows(rows)
    positions = np.zeros(len(rows), np.int64)
    for batch, first in enumerate(plan.first_rows.tolist()):
        found = keys.of_rows(first, int(plan.batches.num_samples[batch]))
        numbers = plan.split_numbers(batch)
        for split in np.unique(splits):
            lower = np.sort(found[numbers == split])
            positions += np.where(splits == split, np.searchsorted(lower, wanted), 0)
    return positions
