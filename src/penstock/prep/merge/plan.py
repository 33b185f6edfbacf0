"""Everything that is decided before a byte is written: which split a sample belongs to, and where it goes.

Splits are computed from seed and position when they are needed; nothing is kept per sample.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.prep.merge.batches import Batches
from penstock.prep.merge.layouts import StoreFile, store_files
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.readers.batch_files import read_array, read_header
from penstock.readers.store_schema import MANIFEST_NAME, StoreSchema

Keys = NDArray[np.uint64]
SplitNumbers = NDArray[np.uint8]
"""A split for each sample of a batch: its index among the names."""

_CHUNK_ROWS = 1 << 16
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_KEY_BITS = 64
_DIGIT_BITS = 16
_FAR = 0.05
"""Of all samples: a split that has so many more or fewer than its share gets a warning."""
MAX_PARTS = 1024
"""Each has checksums that are kept until the end: there are not more, however large the data."""
LAYOUT_VERSION = 2
"""Counts up when the same inputs and options give other arrays."""


class KeyStream:
    """A random number for every sample, by SplitMix64 from its position alone: any process can compute it."""

    def __init__(self, purpose: str, seed: int) -> None:
        digest = hashlib.blake2b(f"{purpose}:{seed}".encode(), digest_size=8).digest()
        self._start = np.uint64(int.from_bytes(digest, "little"))

    def of_rows(self, first: int, count: int) -> Keys:
        return self.at_rows(np.arange(first, first + count))

    def at_rows(self, rows: NDArray[np.int64]) -> Keys:
        return self.of_values((rows + 1).astype(np.uint64))

    def of_values(self, values: Keys) -> Keys:
        """Those that belong to numbers instead of positions; equal ones get the same."""
        keys = values * _STEP
        keys += self._start
        for shift, multiplier in zip(_SHIFTS[:2], _MULTIPLIERS, strict=True):
            keys ^= keys >> shift
            keys *= multiplier
        keys ^= keys >> _SHIFTS[2]
        return keys

    def bound(self, num_rows: int, rank: int) -> int:
        """The number that exactly `rank` samples are below; only those with the same highest digit are sorted."""
        if rank >= num_rows:
            return 1 << _KEY_BITS
        shift = np.uint64(_KEY_BITS - _DIGIT_BITS)
        counts = np.zeros(1 << _DIGIT_BITS, np.int64)
        for keys in self._chunks(num_rows):
            counts += np.bincount((keys >> shift).astype(np.int64), minlength=len(counts))
        ends = np.cumsum(counts)
        digit = int(np.searchsorted(ends, rank, side="right"))
        left = np.concatenate([keys[keys >> shift == digit] for keys in self._chunks(num_rows)])
        return int(np.sort(left)[rank - int(ends[digit] - counts[digit])])

    def _chunks(self, num_rows: int) -> Iterator[Keys]:
        for first in range(0, num_rows, _CHUNK_ROWS):
            yield self.of_rows(first, min(_CHUNK_ROWS, num_rows - first))


@dataclass(frozen=True)
class Splitter:
    names: tuple[str, ...]
    by: str | None
    """As in `SplitShares`; None: there is one split."""
    keys: KeyStream
    bounds: tuple[int, ...]
    """Of samples and groups: the lowest random number of every split but the first."""
    batches: Batches
    source_ends: NDArray[np.int64]
    """For each input file, the sample after its last."""
    by_source: SplitNumbers

    def numbers(self, batch: int) -> SplitNumbers | int:
        """The splits of the samples of a batch; one number where all have the same."""
        if self.by is None:
            return 0
        first, end = self.batches.first_rows[batch : batch + 2].tolist()
        if self.by == "file":
            rows = [first, max(first, end - 1)]
            first_source, last_source = np.searchsorted(self.source_ends, rows, side="right")
            splits = self.by_source[first_source : last_source + 1]
            if (splits == splits[:1]).all():  # few batches have samples of several files
                return int(splits[0]) if len(splits) else 0
            sources = np.searchsorted(self.source_ends, np.arange(first, end), side="right")
            return np.take(self.by_source, sources)
        if self.by == "group":
            header = read_header(self.batches.path(batch))
            groups = read_array(header, header.arrays[self.batches.schema.names.groups])
            keys = self.keys.of_values(groups.astype(np.uint64, copy=False))
        else:
            keys = self.keys.of_rows(first, end - first)
        numbers = np.zeros(len(keys), np.uint8)
        for bound in self.bounds:
            if bound < 1 << _KEY_BITS:
                numbers += keys >= np.uint64(bound)
        return numbers


def splitter_of(batches: Batches, splits: SplitShares | None, seed: int) -> Splitter:
    groups = batches.schema.names.groups
    spec = batches.schema.spec(groups) if groups in batches.schema else None
    if spec and (spec.width is not None or not np.issubdtype(spec.dtype, np.integer)):
        raise DataError(
            f"{batches.path(0)}: array '{groups}' is {spec}; that name is for what keeps samples together in splits, "
            "one whole number per sample: give it another"
        )
    if spec and len(batches.schema.arrays) == 1:
        raise DataError(f"{batches.path(0)}: has no array but '{groups}', of which nothing is in a store")
    if splits and splits.by == "group" and spec is None:
        raise DataError(
            f"{batches.path(0)}: has no array '{groups}', so that samples cannot be kept together in groups; "
            "give splits.group_key to penstock prep, or split by sample or file"
        )
    shares = splits.shares if splits else {"train": 1.0}
    by = splits.by if splits else None
    keys = KeyStream(f"split by {by}", seed)
    bounds: list[int] = []
    source_samples = batches.num_samples if batches.source_samples is None else batches.source_samples
    by_source = np.zeros(0, np.uint8)
    if by == "sample":  # the shares are exact
        total = batches.total_samples
        ranks = list(accumulate(exact_counts(shares, total).values()))[:-1]
        bounds = [keys.bound(total, rank) for rank in ranks]
    elif by == "group":  # the shares are those of the groups, as chance has it
        bounds = [round(end * (1 << _KEY_BITS)) for end in list(accumulate(shares.values()))[:-1]]
    elif by == "file":
        by_source = files_to_splits(source_samples, list(shares.values()), keys)
    return Splitter(tuple(shares), by, keys, tuple(bounds), batches, np.cumsum(source_samples), by_source)


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


def files_to_splits(num_samples: NDArray[np.int64], shares: Sequence[float], keys: KeyStream) -> SplitNumbers:
    """The split of each input file: from large to small, about equal ones in random order, each where most is missing.

    No split is off its share by more than the largest file. A split without files gets the smallest of the fullest one.
    """
    total, largest = int(num_samples.sum()), int(num_samples.max(initial=0))
    missing = [share * total for share in shares]
    splits = np.zeros(len(num_samples), np.uint8)
    sizes = num_samples.tolist()
    # The small ones even out what the large ones have left; less than double is about the same size.
    doublings = np.frexp(num_samples.astype(np.float64))[1]
    for file in np.lexsort((keys.of_rows(0, len(num_samples)), -doublings)).tolist():
        split = missing.index(max(missing))
        splits[file] = split
        missing[split] -= sizes[file]
    for empty in range(len(shares)):
        if num_samples[splits == empty].any():
            continue
        giver = missing.index(min(missing))
        files = np.flatnonzero((splits == giver) & (num_samples > 0))
        if len(files) < 2:
            continue
        smallest = int(files[np.argmin(num_samples[files])])
        if missing[giver] + sizes[smallest] <= largest:
            splits[smallest] = empty
            missing[giver] += sizes[smallest]
            missing[empty] -= sizes[smallest]
    return splits


def split_warnings(batches: Batches, splits: SplitShares | None, counts: Mapping[str, int]) -> Iterator[str]:
    """Groups that are used for nothing, unknown input files, empty splits, and shares far from those asked for."""
    total, groups = batches.total_samples, batches.schema.names.groups
    if groups in batches.schema and (splits is None or splits.by != "group"):
        yield f"array '{groups}' is left out: it only tells splits by group which samples stay together"
    if splits is None or not total:
        return
    if splits.by == "file" and batches.source_samples is None:
        yield f"splits by file: no {MANIFEST_NAME} tells which input files samples are of: each batch file is one"
    num_files = len(batches if batches.source_samples is None else batches.source_samples)
    reasons = {
        "sample": f"its share of {total:,} samples is less than one",
        "group": "no group came to it; give more groups, or split by sample",
        "file": f"there are too few input files ({num_files:,}); give more, or split by sample",
    }
    for name, count in counts.items():
        if not count:
            yield f"split {name} is empty: {reasons[splits.by]}"
    if any(abs(counts[name] - share * total) > _FAR * total for name, share in splits.shares.items()):
        found = ", ".join(f"{name} {count / total:.2f}" for name, count in counts.items())
        wanted = ", ".join(f"{share:g}" for share in splits.shares.values())
        yield f"shares by {splits.by} are {found}, not {wanted}: too few {splits.by}s to come nearer"


@dataclass(frozen=True)
class MergePlan:
    batches: Batches
    options: MergeOptions
    splitter: Splitter
    starts: NDArray[np.int64]
    """For each batch and split, how many samples of the split come before; one more batch for the end."""
    files: tuple[StoreFile, ...]
    """Empty where the target is many files."""

    @property
    def schema(self) -> StoreSchema:
        return self.batches.result_schema

    @cached_property
    def columns(self) -> tuple[tuple[int, str], ...]:
        specs = enumerate(self.batches.schema.arrays)
        return tuple((column, spec.name) for column, spec in specs if spec.name in self.schema)

    @property
    def num_bytes(self) -> int:
        return self.batches.total_samples * self.schema.row_bytes

    @property
    def file_names(self) -> list[str]:
        """What is written to output_dir: files, or folders of many files."""
        return [file.name for file in self.files] or list(self.splitter.names)

    @property
    def process_bytes(self) -> int:
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
        numbers = np.asarray(self.splitter.numbers(batch), np.uint8)
        return np.broadcast_to(numbers, int(self.batches.num_samples[batch]))

    def order_numbers(self, batch: int) -> Keys:
        """What a shuffle sorts the samples of a batch by."""
        first, end = self.batches.first_rows[batch : batch + 2].tolist()
        return self.order_keys.of_rows(first, end - first)

    def parts(self) -> Iterator[range]:
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
