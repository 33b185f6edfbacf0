"""Everything that is decided before a byte is written."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.config.sizes import MIB
from penstock.store.merge.batches import Batches, fingerprint_facts
from penstock.store.merge.layout import Place, StoreFile, store_files
from penstock.store.merge.options import MergeOptions
from penstock.store.merge.splitting import Splitter, splitter_of
from penstock.store.schema import StoreSchema

PART_BYTES = 64 * MIB
"""About what is merged before it is noted as done; a killed merge repeats at most so much for each process."""

LAYOUT_VERSION = 1
"""Counts up when the same inputs and options give other bytes."""


@dataclass(frozen=True)
class MergePlan:
    """Which sample goes where."""

    batches: Batches
    options: MergeOptions
    splitter: Splitter
    starts: NDArray[np.int64]
    """For each batch and split, how many samples of the split come before; one more batch for the end."""
    files: tuple[StoreFile, ...]

    @property
    def schema(self) -> StoreSchema:
        """Of the result."""
        return result_schema(self.batches)

    @property
    def split_counts(self) -> dict[str, int]:
        """Samples of each split."""
        return dict(zip(self.splitter.names, self.starts[-1].tolist(), strict=True))

    @cached_property
    def places(self) -> dict[tuple[str, str], Place]:
        """Where each array of each split goes."""
        return {place.key: place for file in self.files for place in file.places}

    @cached_property
    def fingerprint(self) -> str:
        """Of inputs and options: equal ones give equal bytes."""
        facts = [LAYOUT_VERSION, fingerprint_facts(self.batches), dict(self.options.decisive)]
        return hashlib.blake2b(json.dumps(facts).encode(), digest_size=8).hexdigest()

    def parts(self) -> Iterator[range]:
        """Batches in order, some at a time."""
        row_bytes = self.schema.row_bytes
        first, num_bytes = 0, 0
        for batch, count in enumerate(self.batches.num_samples.tolist()):
            num_bytes += count * row_bytes
            if num_bytes >= PART_BYTES:
                yield range(first, batch + 1)
                first, num_bytes = batch + 1, 0
        if first < len(self.batches):
            yield range(first, len(self.batches))


def result_schema(batches: Batches) -> StoreSchema:
    """All arrays but what keeps samples together."""
    return batches.schema.without(batches.schema.names.groups)


def plan_merge(batches: Batches, options: MergeOptions, sources: list[int] | None = None) -> MergePlan:
    """Decide where every sample goes. `sources`: the number of each batch's input file; None: each has its own."""
    sources = list(range(len(batches))) if sources is None else sources
    splitter = splitter_of(batches, options.splits, options.seed, sources)
    starts = _starts(batches, splitter)
    counts = dict(zip(splitter.names, starts[-1].tolist(), strict=True))
    files = store_files(result_schema(batches), counts, options.heads == "npz")
    return MergePlan(batches, options, splitter, starts, files)


def _starts(batches: Batches, splitter: Splitter) -> NDArray[np.int64]:
    num_splits = len(splitter.names)
    counts = np.zeros((len(batches) + 1, num_splits), np.int64)
    for batch, num_samples in enumerate(batches.num_samples.tolist()):
        numbers = splitter.numbers(batch)
        if isinstance(numbers, int):
            counts[batch + 1, numbers] = num_samples
        else:
            counts[batch + 1] = np.bincount(numbers, minlength=num_splits)
    return np.cumsum(counts, axis=0)
