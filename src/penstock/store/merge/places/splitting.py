"""Which split a sample belongs to, worked out from seed and place when it is asked for; nothing is kept by sample."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.batch_file.files import read_array, read_header
from penstock.store.merge.options import SplitShares
from penstock.store.merge.places.file_splits import files_to_splits
from penstock.store.merge.places.keys import KeyStream
from penstock.store.merge.source.batches import Batches

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
class OneSplit:
    """All samples have the same split."""

    names: tuple[str, ...] = ("train",)

    def numbers(self, batch: int) -> int:
        """The same for all."""
        return 0


@dataclass(frozen=True)
class ByFile:
    """All samples of an input file have the same split."""

    names: tuple[str, ...]
    by_source: Numbers
    source_ends: NDArray[np.int64]
    """For each input file, the sample behind its last."""
    first_rows: NDArray[np.int64]

    def numbers(self, batch: int) -> Numbers | int:
        """From which file the samples come; few batches have samples of several."""
        first, end = self.first_rows[batch : batch + 2].tolist()
        first_source, last_source = np.searchsorted(
            self.source_ends, [first, max(first, end - 1)], side="right"
        )
        splits = self.by_source[first_source : last_source + 1]
        if (splits == splits[:1]).all():
            return int(splits[0]) if len(splits) else 0
        sources = np.searchsorted(self.source_ends, np.arange(first, end), side="right")
        return np.take(self.by_source, sources)


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


def splitter_of(
    batches: Batches, splits: SplitShares | None, seed: int, source_samples: NDArray[np.int64]
) -> Splitter:
    """The way of splitting that was asked for. `source_samples`: how many samples each input file gave."""
    _check_groups(batches)
    if splits is None:
        return OneSplit()
    shares = splits.shares
    names = tuple(shares)
    keys = KeyStream(f"split by {splits.by}", seed)
    first_rows = np.concatenate([[0], np.cumsum(batches.num_samples)])
    if splits.by == "file":
        by_source = files_to_splits(source_samples, list(shares.values()), keys)
        return ByFile(names, by_source, np.cumsum(source_samples), first_rows)
    if splits.by == "group":
        _need_groups(batches)
        return ByGroup(names, keys, tuple(round(end * _KEY_SPAN) for end in _ends(shares.values())), batches)
    total = batches.total_samples
    ranks = _ends(exact_counts(shares, total).values())
    return BySample(names, keys, tuple(keys.bound(total, int(rank)) for rank in ranks), first_rows)


def _ends(sizes: Iterable[float]) -> list[float]:
    """Where all but the last end, if they lie behind each other."""
    return list(accumulate(sizes))[:-1]


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


def _check_groups(batches: Batches) -> None:
    """Refuse an array that is called like the one that keeps samples together, and is something else."""
    name = batches.schema.names.groups
    spec = batches.schema.spec(name) if name in batches.schema else None
    if spec and (spec.width is not None or not np.issubdtype(spec.dtype, np.integer)):
        raise DataError(
            f"{batches.paths[0]}: array '{name}' is {spec}; that name is for what keeps samples together in splits, "
            "one whole number per sample: give it another"
        )
    if spec and len(batches.schema.arrays) == 1:
        raise DataError(f"{batches.paths[0]}: has no array but '{name}', of which nothing is in a store")


def _need_groups(batches: Batches) -> None:
    name = batches.schema.names.groups
    if name not in batches.schema:
        raise DataError(
            f"{batches.paths[0]}: has no array '{name}', so that samples cannot be kept together in groups; "
            "give splits.group_key to penstock prep, or split by sample or file"
        )
