"""Counting distinct values in a fixed number of bytes, and finding values that most rows have."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.features.hashes import Hashes

SKETCH_HASHES = 4096
STANDARD_ERROR = 1 / math.sqrt(SKETCH_HASHES - 2)
"""Of an estimate, as a part of it: 1.6 %."""
_MOST_FREQUENT = 64
_FREQUENT_PART = 16
"""A value is followed from its first block on where it is one of so many values."""


@dataclass(frozen=True, slots=True)
class HashRuns:
    """The distinct hashes of a block in ascending order, and how often each stands in it."""

    hashes: Hashes
    counts: Any

    @classmethod
    def of(cls, hashes: Hashes) -> "HashRuns":
        """Sort once, for everybody who counts."""
        ordered = np.sort(hashes)
        is_first = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
        starts = np.flatnonzero(is_first)
        return cls(ordered[starts], np.diff(starts, append=len(ordered)))


class DistinctCount:
    """The smallest hashes that were seen: exact while they are few, an estimate from their density after that.

    Where n distinct hashes are spread evenly, the k-th smallest is at about k/n of their range.
    """

    def __init__(self, size: int = SKETCH_HASHES) -> None:
        self._size = size
        self._smallest = np.zeros(0, np.uint64)

    def add(self, runs: HashRuns) -> None:
        """See the values of a block."""
        hashes = runs.hashes
        if not self.is_exact:
            hashes = hashes[: np.searchsorted(hashes, self._smallest[-1])]
        if len(self._smallest):
            places = np.searchsorted(self._smallest, hashes).clip(max=len(self._smallest) - 1)
            hashes = hashes[self._smallest[places] != hashes]
        if len(hashes):
            self._smallest = np.sort(np.concatenate([self._smallest, hashes]))[: self._size]

    @property
    def is_exact(self) -> bool:
        """Whether every distinct value was kept."""
        return len(self._smallest) < self._size

    @property
    def count(self) -> int:
        """How many distinct values were seen, exactly or about."""
        if self.is_exact:
            return len(self._smallest)
        return round((self._size - 1) * 2.0**64 / float(self._smallest[-1]))


class FrequentValues:
    """The values that many rows have, with counts that are at most a sixteenth of all too low.

    A block's value counts where it is at least a sixteenth of the block.
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._values: dict[int, Any] = {}
        self._total = 0

    def add(self, values: Any, hashes: Hashes, runs: HashRuns) -> None:
        """See the values of a block, their hashes, and how often each hash stands there."""
        self._total += len(hashes)
        for index in np.flatnonzero(runs.counts * _FREQUENT_PART >= len(hashes)).tolist():
            found = int(runs.hashes[index])
            self._counts[found] = self._counts.get(found, 0) + int(runs.counts[index])
            if found not in self._values:
                self._values[found] = values[int(np.argmax(hashes == runs.hashes[index]))].as_py()
        if len(self._counts) > 2 * _MOST_FREQUENT:
            self._forget_rare()

    def _forget_rare(self) -> None:
        kept = sorted(self._counts, key=lambda found: -self._counts[found])[:_MOST_FREQUENT]
        self._counts = {found: self._counts[found] for found in kept}
        self._values = {found: self._values[found] for found in kept}

    def top(self) -> tuple[Any, float] | None:
        """The most frequent value, and which part of all values it is; None: no value is frequent."""
        if not self._counts:
            return None
        found = max(self._counts, key=lambda candidate: self._counts[candidate])
        return self._values[found], self._counts[found] / self._total
