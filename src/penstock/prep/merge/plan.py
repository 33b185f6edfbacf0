"""Everything that is decided before a byte is written."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.prep.merge.batches import Batches
from penstock.prep.merge.layouts import StoreFile, store_files
from penstock.prep.merge.options import MergeOptions
from penstock.prep.merge.splits import Keys, KeyStream, SplitNumbers, Splitter, splitter_of
from penstock.readers.store_schema import StoreSchema

MAX_PARTS = 1024
"""Each has checksums that are kept until the end: there are not more, however large the data."""
LAYOUT_VERSION = 2
"""Counts up when the same inputs and options give other arrays."""


@dataclass(frozen=True)
class MergePlan:
    """Which sample goes where."""

    batches: Batches
    options: MergeOptions
    splitter: Splitter
    starts: NDArray[np.int64]
    """For each batch and split, how many samples of the split come before; one more batch for the end."""
    files: tuple[StoreFile, ...]
    """Empty where the target is many files."""

    @property
    def schema(self) -> StoreSchema:
        """Of the result."""
        return self.batches.result_schema

    @cached_property
    def columns(self) -> tuple[tuple[int, str], ...]:
        """The arrays of the batch files that are in the result: index and name."""
        specs = enumerate(self.batches.schema.arrays)
        return tuple((column, spec.name) for column, spec in specs if spec.name in self.schema)

    @property
    def num_bytes(self) -> int:
        """Of the values of the result, before compression."""
        return self.batches.total_samples * self.schema.row_bytes

    @property
    def file_names(self) -> list[str]:
        """What is written to output_dir: files, or folders of many files."""
        return [file.name for file in self.files] or list(self.splitter.names)

    @property
    def process_bytes(self) -> int:
        """What one process may hold in a shuffle."""
        return self.options.memory_bytes // self.options.workers

    @property
    def split_counts(self) -> dict[str, int]:
        return dict(zip(self.splitter.names, self.starts[-1].tolist(), strict=True))

    @cached_property
    def fingerprint(self) -> str:
        """Of inputs and options: equal ones give equal arrays."""
        facts = [LAYOUT_VERSION, self.batches.digest, dict(self.options.decisive)]
        digest = hashlib.blake2b(json.dumps(facts).encode(), digest_size=8)
        source_samples = self.batches.source_samples
        digest.update((self.batches.num_samples if source_samples is None else source_samples).tobytes())
        return digest.hexdigest()

    @property
    def order_keys(self) -> KeyStream:
        return KeyStream("order", self.options.seed)

    def split_numbers(self, batch: int) -> SplitNumbers:
        """The split of each sample of a batch."""
        numbers = np.asarray(self.splitter.numbers(batch), np.uint8)
        return np.broadcast_to(numbers, int(self.batches.num_samples[batch]))

    def order_numbers(self, batch: int) -> Keys:
        """What a shuffle sorts the samples of a batch by."""
        first, end = self.batches.first_rows[batch : batch + 2].tolist()
        return self.order_keys.of_rows(first, end - first)

    def parts(self) -> Iterator[range]:
        """Batches in order, some at a time."""
        row_bytes = self.schema.row_bytes
        part_bytes = max(self.options.part_bytes, self.num_bytes // MAX_PARTS)
        first, num_bytes = 0, 0
        for batch, count in enumerate(self.batches.num_samples.tolist()):
            num_bytes += count * row_bytes
            if num_bytes >= part_bytes:
                yield range(first, batch + 1)
                first, num_bytes = batch + 1, 0
        if first < len(self.batches):
            yield range(first, len(self.batches))


def plan_merge(batches: Batches, options: MergeOptions) -> MergePlan:
    """Decide where every sample goes."""
    splitter = splitter_of(batches, options.splits, options.seed)
    num_splits = len(splitter.names)
    counts = np.zeros((len(batches) + 1, num_splits), np.int64)
    for batch, num_samples in enumerate(batches.num_samples.tolist()):
        numbers = splitter.numbers(batch)
        if isinstance(numbers, int):
            counts[batch + 1, numbers] = num_samples
        else:
            counts[batch + 1] = np.bincount(numbers, minlength=num_splits)
    starts = np.cumsum(counts, axis=0)
    split_counts = dict(zip(splitter.names, starts[-1].tolist(), strict=True))
    files = store_files(batches.result_schema, split_counts, options)
    return MergePlan(batches, options, splitter, starts, files)
