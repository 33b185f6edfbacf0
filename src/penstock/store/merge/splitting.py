"""Which split a sample belongs to, worked out from seed and place when it is asked for; nothing is kept by sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.batch_file import read_array, read_header
from penstock.store.merge.batches import Batches
from penstock.store.merge.keys import KeyStream
from penstock.store.merge.options import SplitShares

Numbers = NDArray[np.uint8]
"""A split for each sample of a batch: its place among the names."""

_KEY_SPAN = 1 << 64


class Splitter(Protocol):
    """Knows the splits of all samples."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the splits, in order."""
        ...

    def numbers(self, batch: int) -> Numbers | int:
        """The splits of the samples of a batch; one number where all have the same."""
        ...


@dataclass(frozen=True)
class ByFile:
    """All samples of a batch file have the same split."""

    names: tuple[str, ...]
    by_batch: NDArray[np.uint8]

    def numbers(self, batch: int) -> int:
        """The same for all."""
        return int(self.by_batch[batch])


@dataclass(frozen=True)
class BySample:
    """Each sample for itself; the shares are exact."""

    names: tuple[str, ...]
    keys: KeyStream
    bounds: tuple[int, ...]
    """The lowest random number of every split but the first."""
    first_rows: NDArray[np.int64]

    def numbers(self, batch: int) -> Numbers:
        """By comparing random numbers."""
        first, end = self.first_rows[batch : batch + 2].tolist()
        return _between(self.keys.of_rows(first, end - first), self.bounds)


@dataclass(frozen=True)
class ByGroup:
    """Samples of a group stay together; the shares are those of the groups, as chance has it."""

    names: tuple[str, ...]
    keys: KeyStream
    bounds: tuple[int, ...]
    batches: Batches

    def numbers(self, batch: int) -> Numbers:
        """From what the batch file says about groups."""
        header = read_header(self.batches.paths[batch])
        groups = read_array(header, header.array(self.batches.schema.names.groups))
        return _between(self.keys.of_values(groups.astype(np.uint64, copy=False)), self.bounds)


def _between(keys: NDArray[np.uint64], bounds: Sequence[int]) -> Numbers:
    numbers = np.zeros(len(keys), np.uint8)
    for bound in bounds:
        if bound < _KEY_SPAN:
            numbers += keys >= np.uint64(bound)
    return numbers


def splitter_of(batches: Batches, splits: SplitShares | None, seed: int, sources: Sequence[int]) -> Splitter:
    """The way of splitting that was asked for. `sources`: for each batch file, the number of its input file."""
    if splits is None:
        return ByFile(("train",), np.zeros(len(batches), np.uint8))
    names = tuple(splits.shares)
    keys = KeyStream(f"split by {splits.by}", seed)
    if splits.by == "file":
        return ByFile(names, _files_to_splits(batches, splits.shares, keys, sources))
    if splits.by == "group":
        _check_groups(batches)
        shares = list(splits.shares.values())
        bounds = [round(sum(shares[:place]) * _KEY_SPAN) for place in range(1, len(shares))]
        return ByGroup(names, keys, tuple(bounds), batches)
    total = batches.total_samples
    counts = list(exact_counts(splits.shares, total).values())
    ranks = [sum(counts[:place]) for place in range(1, len(counts))]
    first_rows = np.concatenate([[0], np.cumsum(batches.num_samples)])
    return BySample(names, keys, tuple(keys.bound(total, rank) for rank in ranks), first_rows)


def exact_counts(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole numbers of samples nearest to the shares: what is left over goes where most was cut off.

    >>> exact_counts({"train": 0.8, "val": 0.1, "test": 0.1}, 13)
    {'train': 11, 'val': 1, 'test': 1}
    """
    counts = {name: int(share * total) for name, share in shares.items()}
    by_rest = sorted(shares, key=lambda name: counts[name] - shares[name] * total)
    for name in by_rest[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def _files_to_splits(
    batches: Batches, shares: Mapping[str, float], keys: KeyStream, sources: Sequence[int]
) -> NDArray[np.uint8]:
    """Input files in random order fill one split after the other, the smallest first; the largest takes the rest.

    A file goes to a split while that brings it nearer to its share; the first always does, so that no split is empty.
    """
    source_of_batch = np.asarray(sources)
    num_sources = int(source_of_batch.max()) + 1
    samples = np.bincount(source_of_batch, weights=batches.num_samples, minlength=num_sources).astype(
        np.int64
    )
    names = list(shares)
    waiting = list(np.argsort(keys.of_rows(0, num_sources)))
    by_source = np.full(num_sources, names.index(max(names, key=lambda name: shares[name])), np.uint8)
    for name in sorted(names, key=lambda name: shares[name])[:-1]:
        wanted, taken = shares[name] * samples.sum(), 0
        while len(waiting) > 1 and (not taken or taken + samples[waiting[-1]] / 2 <= wanted):
            source = waiting.pop()
            by_source[source] = names.index(name)
            taken += int(samples[source])
    return np.take(by_source, source_of_batch)


def _check_groups(batches: Batches) -> None:
    name = batches.schema.names.groups
    if name not in batches.schema:
        raise DataError(
            f"{batches.paths[0]}: has no array '{name}', so that samples cannot be kept together in groups; "
            "give splits.group_key to penstock prep, or split by sample or file"
        )
    spec = batches.schema.spec(name)
    if spec.width is not None or not np.issubdtype(spec.dtype, np.integer):
        raise DataError(
            f"{batches.paths[0]}: array '{name}' is {spec}; it must be one whole number per sample"
        )
