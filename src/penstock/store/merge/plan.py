"""Everything that is decided before a byte is written."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.store.merge.layouts.hdf5_layout import hdf5_files
from penstock.store.merge.layouts.npy_layout import npy_files
from penstock.store.merge.layouts.store_file import Place, StoreFile, total_bytes
from penstock.store.merge.options import MergeOptions
from penstock.store.merge.places.splitting import Numbers, Splitter, splitter_of
from penstock.store.merge.source.batches import Batches, digest_of
from penstock.store.schema import StoreSchema

MOST_PARTS = 1024
"""Each has checksums that are kept until the end: there are not more, however large the data."""

LAYOUT_VERSION = 2
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
    """Those whose bytes have known places; none where the target is many files."""
    source_samples: NDArray[np.int64]
    """How many samples each input file gave."""
    knows_inputs: bool
    """Whether that is known; else each batch file counts as an input file."""

    @cached_property
    def schema(self) -> StoreSchema:
        """Of the result."""
        return result_schema(self.batches)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The arrays of the batch files that are in the result."""
        specs = enumerate(self.batches.schema.arrays)
        return tuple(column for column, spec in specs if spec.name in self.schema)

    @cached_property
    def first_rows(self) -> NDArray[np.int64]:
        """Of each batch: how many samples come before."""
        return np.cumsum(self.batches.num_samples) - self.batches.num_samples

    @property
    def num_bytes(self) -> int:
        """Of the result, before compression."""
        if self.options.has_part_files:
            return self.batches.total_samples * self.schema.row_bytes
        return total_bytes(self.files)

    @property
    def file_names(self) -> list[str]:
        """What is written to output_dir: files, or folders of many files."""
        return (
            list(self.splitter.names) if self.options.has_part_files else [file.name for file in self.files]
        )

    @property
    def process_bytes(self) -> int:
        """What one process may hold in a shuffle."""
        return self.options.memory_bytes // self.options.workers

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
        facts = [LAYOUT_VERSION, digest_of(self.batches).hex(), dict(self.options.decisive)]
        digest = hashlib.blake2b(json.dumps(facts).encode(), digest_size=8)
        digest.update(self.source_samples.tobytes())
        return digest.hexdigest()

    def split_numbers(self, batch: int) -> Numbers:
        """The split of each sample of a batch."""
        numbers = self.splitter.numbers(batch)
        if isinstance(numbers, int):
            return np.full(int(self.batches.num_samples[batch]), numbers, np.uint8)
        return numbers

    def parts(self) -> Iterator[range]:
        """Batches in order, some at a time."""
        row_bytes = self.schema.row_bytes
        part_bytes = max(self.options.part_bytes, self.batches.total_samples * row_bytes // MOST_PARTS)
        first, num_bytes = 0, 0
        for batch, count in enumerate(self.batches.num_samples.tolist()):
            num_bytes += count * row_bytes
            if num_bytes >= part_bytes:
                yield range(first, batch + 1)
                first, num_bytes = batch + 1, 0
        if first < len(self.batches):
            yield range(first, len(self.batches))


def result_schema(batches: Batches) -> StoreSchema:
    """All arrays but what keeps samples together."""
    return batches.schema.without(batches.schema.names.groups)


def plan_merge(
    batches: Batches, options: MergeOptions, source_samples: Sequence[int] | None = None
) -> MergePlan:
    """Decide where every sample goes.

    `source_samples` is how many samples each input file gave, in the order of the batches; None: each batch file
    counts as an input file.
    """
    samples = batches.num_samples if source_samples is None else np.asarray(source_samples, np.int64)
    splitter = splitter_of(batches, options.splits, options.seed, samples)
    starts = _starts(batches, splitter)
    counts = dict(zip(splitter.names, starts[-1].tolist(), strict=True))
    schema = result_schema(batches)
    files = _files(schema, counts, options)
    return MergePlan(batches, options, splitter, starts, files, samples, source_samples is not None)


def _files(schema: StoreSchema, counts: Mapping[str, int], options: MergeOptions) -> tuple[StoreFile, ...]:
    if options.has_part_files:
        from penstock.store.merge.layouts.arrow_rows import check_types

        check_types(schema, options.target)
        return ()
    if options.target == "hdf5":
        return hdf5_files(schema, counts)
    return npy_files(schema, counts, options.heads == "npz")


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
