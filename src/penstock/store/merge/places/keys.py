"""A random number for every sample, from its place in the data alone.

Nothing is drawn one after the other: any process can work out the numbers of any samples at any time, and none of them
is ever kept. They are those of SplitMix64, which gives 2**64 different numbers before the first comes again: no two
samples have the same, so that their order is never in doubt.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

CHUNK_ROWS = 1 << 16
"""How many are worked out at a time: half a megabyte."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_KEY_BITS = 64
_DIGIT_BITS = 16


ORDER = "order"
"""What the numbers decide that a shuffle sorts by."""


class KeyStream:
    """The random numbers of a purpose and a seed."""

    def __init__(self, purpose: str, seed: int) -> None:
        digest = hashlib.blake2b(f"{purpose}:{seed}".encode(), digest_size=8).digest()
        self._start = np.uint64(int.from_bytes(digest, "little"))

    def of_rows(self, first: int, count: int) -> Keys:
        """Those of some samples behind each other."""
        return self.at_rows(np.arange(first, first + count))

    def at_rows(self, rows: NDArray[np.int64]) -> Keys:
        """Those of any samples."""
        return self.of_values((rows + 1).astype(np.uint64))

    def of_values(self, values: Keys) -> Keys:
        """Those that belong to numbers instead of places; equal ones get the same."""
        keys = values * _STEP
        keys += self._start
        for shift, multiplier in zip(_SHIFTS[:2], _MULTIPLIERS, strict=True):
            keys ^= keys >> shift
            keys *= multiplier
        keys ^= keys >> _SHIFTS[2]
        return keys

    def chunks(self, num_rows: int) -> Iterator[Keys]:
        """Those of all samples, some at a time."""
        for first in range(0, num_rows, CHUNK_ROWS):
            yield self.of_rows(first, min(CHUNK_ROWS, num_rows - first))

    def bound(self, num_rows: int, rank: int) -> int:
        """The number that exactly `rank` of the samples are below.

        Digit by digit, from the highest: how many samples have it is counted, and the digit in which the rank falls
        is kept, until so few samples are left that they can be sorted. For a thousand million of them that is after
        the first digit; more than 65,536 numbers are never in memory.
        """
        if rank >= num_rows:
            return 1 << _KEY_BITS
        prefix, left_bits, num_left = 0, _KEY_BITS, num_rows
        while num_left > CHUNK_ROWS:
            left_bits -= _DIGIT_BITS
            counts = self._digit_counts(num_rows, prefix, left_bits)
            ends = np.cumsum(counts)
            digit = int(np.searchsorted(ends, rank, side="right"))
            rank -= int(ends[digit] - counts[digit])
            prefix, num_left = prefix << _DIGIT_BITS | digit, int(counts[digit])
        left = np.concatenate([_with_prefix(keys, prefix, left_bits) for keys in self.chunks(num_rows)])
        return int(np.sort(left)[rank])

    def _digit_counts(self, num_rows: int, prefix: int, left_bits: int) -> NDArray[np.int64]:
        counts = np.zeros(1 << _DIGIT_BITS, np.int64)
        for keys in self.chunks(num_rows):
            found = _with_prefix(keys, prefix, left_bits + _DIGIT_BITS)
            digits = (found >> np.uint64(left_bits)) & np.uint64((1 << _DIGIT_BITS) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=1 << _DIGIT_BITS)
        return counts


def _with_prefix(keys: Keys, prefix: int, left_bits: int) -> Keys:
    """Those that are `prefix` without their last bits."""
    return keys if left_bits == _KEY_BITS else keys[keys >> np.uint64(left_bits) == np.uint64(prefix)]
