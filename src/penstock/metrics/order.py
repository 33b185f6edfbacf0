"""Rows in the order of their groups, predictions and labels, by integers: these sort faster than anything else."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def segment_starts(values: NDArray[Any]) -> Indices:
    """Where another value begins."""
    if not len(values):
        return np.zeros(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


def sorted_keys(keys: NDArray[np.uint64]) -> tuple[Indices, NDArray[np.uint64]]:
    """The order of the keys, and the keys in it; keys with enough free bits are sorted with the row's number."""
    index_bits = np.uint64(len(keys).bit_length())
    if not len(keys) or keys.max() >> (np.uint64(64) - index_bits):
        order = np.argsort(keys)
        return order, keys[order]
    words = keys << index_bits
    words |= np.arange(len(keys), dtype=np.uint64)
    words.sort()
    order = (words & ((np.uint64(1) << index_bits) - np.uint64(1))).view(np.int64)
    words >>= index_bits
    return order, words


def order_codes(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """Integers of 32 bits in the order of up to 2**32 numbers, equal where these are equal."""
    with np.errstate(over="ignore"):
        narrow = numbers.astype(np.float32)
    if numbers.dtype != np.float32 and not np.array_equal(narrow, numbers):
        order = np.argsort(numbers)
        ordered, codes = numbers[order], np.zeros(len(numbers), np.uint32)
        codes[order[1:]] = np.cumsum(ordered[1:] != ordered[:-1], dtype=np.uint32)
        return codes
    bits = (narrow + np.float32(0)).view(np.uint32)  # adding zero makes -0.0 the same bits as 0.0
    is_negative = bits >> np.uint32(31) == 1
    return bits ^ np.where(is_negative, np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
