"""Counting pairs of rows that are in the right order, while sorting them.

Each row is a word: the order of its label in the high half, the reversed order of its prediction in the low one. In
sorted words a pair is in the right order exactly if the later low half is the smaller one: rows with one label come
from the highest prediction down, so that a tie on either side is no such pair.

Importing this module imports numba (about 110 MB).
"""

from typing import Any

import numpy as np

from penstock.runtime.kernels import kernel

_RUN = 16
"""Elements that are sorted by insertion, before sorted runs are merged: the fastest of 8, 16 and 32."""
_LOW_HALF = np.uint64(0xFFFFFFFF)


@kernel
def num_inversions(values: Any, buffer: Any) -> int:
    """Pairs whose later value is the smaller one; the values are sorted, in a buffer that is at least as long."""
    num_values, total = len(values), 0
    for start in range(0, num_values, _RUN):
        for index in range(start + 1, min(start + _RUN, num_values)):
            value, slot = values[index], index
            while slot > start and values[slot - 1] > value:
                values[slot] = values[slot - 1]
                slot -= 1
            values[slot] = value
            total += index - slot
    source, sink, width = values, buffer, _RUN
    while width < num_values:
        for start in range(0, num_values, 2 * width):
            left, middle = start, min(start + width, num_values)
            right, end = middle, min(start + 2 * width, num_values)
            slot = start
            while left < middle and right < end:
                # Without a branch on values, which no processor could predict.
                is_left = source[left] <= source[right]
                sink[slot] = source[left] if is_left else source[right]
                total += 0 if is_left else middle - left
                left += is_left
                right += not is_left
                slot += 1
            for index in range(left, middle):
                sink[slot + index - left] = source[index]
            for index in range(right, end):
                sink[slot + index - right] = source[index]
        source, sink, width = sink, source, 2 * width
    for index in range(num_values):
        values[index] = source[index]
    return total


@kernel
def count_right_pairs(words: Any, bounds: Any) -> Any:
    """For each segment of words, from one bound to the next, its pairs in the right order; words are overwritten."""
    right, max_size = np.zeros(len(bounds) - 1, np.int64), 0
    for number in range(len(right)):
        max_size = max(max_size, bounds[number + 1] - bounds[number])
    buffer = np.empty(max_size, words.dtype)
    for number in range(len(right)):
        own = words[bounds[number] : bounds[number + 1]]
        num_inversions(own, buffer)
        for index in range(len(own)):
            own[index] &= _LOW_HALF
        right[number] = num_inversions(own, buffer)
    return right
