"""Whole input files to splits, so that each split has about its share of the samples."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.store.merge.places.keys import KeyStream


def files_to_splits(
    num_samples: NDArray[np.int64], shares: Sequence[float], keys: KeyStream
) -> NDArray[np.uint8]:
    """The split of each input file: from large to small, about equal ones in random order, each where most is missing.

    No split has more or fewer samples than its share by more than the largest file has. One that gets no file so takes
    the smallest of the split that is furthest above its share, where that keeps both as near.
    """
    total, largest = int(num_samples.sum()), int(num_samples.max(initial=0))
    missing = [share * total for share in shares]
    splits = np.zeros(len(num_samples), np.uint8)
    sizes = num_samples.tolist()
    for file in _in_order(num_samples, keys):
        split = missing.index(max(missing))
        splits[file] = split
        missing[split] -= sizes[file]
    for empty in range(len(shares)):
        if not num_samples[splits == empty].any():
            _fill(empty, splits, num_samples, missing, largest)
    return splits


def _in_order(num_samples: NDArray[np.int64], keys: KeyStream) -> list[int]:
    """The small ones are left to even out what the large ones have left; less than double is about the same size."""
    doublings = np.frexp(num_samples.astype(np.float64))[1]
    order: list[int] = np.lexsort((keys.of_rows(0, len(num_samples)), -doublings)).tolist()
    return order


def _fill(
    empty: int, splits: NDArray[np.uint8], num_samples: NDArray[np.int64], missing: list[float], largest: int
) -> None:
    """Move a file to a split that has none."""
    giver = missing.index(min(missing))
    files = np.flatnonzero((splits == giver) & (num_samples > 0))
    if len(files) < 2:
        return
    smallest = int(files[np.argmin(num_samples[files])])
    count = int(num_samples[smallest])
    if missing[giver] + count <= largest:
        splits[smallest] = empty
        missing[giver] += count
        missing[empty] -= count
