"""Some samples of a store, chosen at random, beside those of the batch files, value by value."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.store.batch_file.files import load_batch
from penstock.store.merge.checking.stored import Samples, stored_arrays
from penstock.store.merge.places.keys import KeyStream
from penstock.store.merge.places.order import places_of_rows
from penstock.store.merge.plan import MergePlan

Arrays = dict[str, NDArray[Any]]
StoredArrays = Mapping[tuple[str, str], Samples]

SAMPLED_ROWS = 256


def row_differences(store: Path, document: dict[str, Any], plan: MergePlan) -> Iterator[str]:
    """Compare some samples; the first wrong one of each array is told."""
    rows = _sampled_rows(plan)
    batch_of = np.searchsorted(plan.first_rows, rows, side="right") - 1
    splits, positions = places_of_rows(plan, rows)
    stored = stored_arrays(store, document)
    told: set[str] = set()
    for batch in np.unique(batch_of).tolist():
        path, first_row = plan.batches.paths[batch], int(plan.first_rows[batch])
        is_pickled = bool(plan.batches.is_pickled[batch])
        arrays = load_batch(path, allow_pickle=is_pickled, mmap=True, schema=plan.batches.schema)
        for place in np.flatnonzero(batch_of == batch).tolist():
            row, position = int(rows[place]) - first_row, int(positions[place])
            split = plan.splitter.names[splits[place]]
            different = _different(arrays, stored, row, split, position)
            for name in (name for name in different if name not in told):
                told.add(name)
                yield (
                    f"{store}: array '{name}' of {split} differs at sample {position} from sample {row} of {path.name}"
                )


def _different(arrays: Arrays, stored: StoredArrays, row: int, split: str, position: int) -> list[str]:
    """The arrays in which a sample of the store is not that of the batch file."""
    return [
        name
        for name, array in arrays.items()
        if (split, name) in stored
        and stored[split, name][position].tobytes() != array[row : row + 1].tobytes()
    ]


def _sampled_rows(plan: MergePlan) -> NDArray[np.int64]:
    total = plan.batches.total_samples
    if total <= SAMPLED_ROWS:
        return np.arange(total)
    keys = KeyStream("verify", plan.options.seed).of_rows(0, SAMPLED_ROWS)
    return np.unique(keys % np.uint64(total)).astype(np.int64)
