"""Compiled loops over the entries of maps: keys apart from values, keys found among entries, row by row.

Strings are (data, starts, ends), as in kernels.py.
"""

from typing import Any

import numpy as np

from penstock.features.kernels import xxh64
from penstock.runtime.kernels import view_kernel


@view_kernel
def find_delimiters(strings: Any, delimiter: Any, last: Any, key_ends: Any, value_starts: Any) -> None:
    """Where the key of each string ends and its value begins: at a zero byte, or at the first or last delimiter.

    Without one, the string is a key alone.
    """
    data, starts, ends = strings
    size = len(delimiter)
    for index in range(len(starts)):
        end = ends[index]
        key_ends[index], value_starts[index] = end, end
        position = starts[index]
        while position < end:
            if data[position] == 0:
                key_ends[index], value_starts[index] = position, position + 1
                break
            if (
                data[position] == delimiter[0]
                and (last or key_ends[index] == end)
                and _are_same(data, position, min(position + size, end), delimiter, 0, size)
            ):
                key_ends[index], value_starts[index] = position, position + size
            position += 1


@view_kernel
def _are_same(left: Any, begin: Any, end: Any, right: Any, other_begin: Any, other_end: Any) -> Any:
    same, offset = end - begin == other_end - other_begin, 0
    while same and offset < end - begin:
        same = left[begin + offset] == right[other_begin + offset]
        offset += 1
    return same


@view_kernel
def find_keys(keys: Any, key_stops: Any, entries: Any, entry_stops: Any, slots: Any, found: Any) -> None:
    """For each key the first equal entry of its row, or -1; row r ends before key_stops[r] and entry_stops[r].

    `slots` is memory to work in: a power of two, at least twice as many as a row has entries.
    """
    key_data, key_starts, key_ends = keys
    data, starts, ends = entries
    key, first = 0, 0
    for row in range(len(key_stops)):
        last_key, last = key_stops[row], entry_stops[row]
        if last_key - key <= 4 or last - first <= 4:  # looking at all of them takes less time than hashing
            while key < last_key:
                found[key] = -1
                for entry in range(first, last):
                    if _are_same(key_data, key_starts[key], key_ends[key], data, starts[entry], ends[entry]):
                        found[key] = entry
                        break
                key += 1
        else:
            size = 16
            while size < 2 * (last - first):
                size *= 2
            for slot in range(size):
                slots[slot] = -1
            for entry in range(first, last):
                slot = _entry_slot(data, starts[entry], ends[entry], slots, size, entries)
                if slots[slot] < 0:
                    slots[slot] = entry
            while key < last_key:
                found[key] = slots[
                    _entry_slot(key_data, key_starts[key], key_ends[key], slots, size, entries)
                ]
                key += 1
        first = last


@view_kernel
def _entry_slot(key_data: Any, begin: Any, end: Any, slots: Any, size: Any, entries: Any) -> Any:
    """The slot of the entry that equals this key, or the free one where it belongs."""
    data, starts, ends = entries
    mask = np.uint64(size - 1)
    slot = xxh64(key_data, begin, end) & mask
    while slots[slot] >= 0 and not _are_same(
        key_data, begin, end, data, starts[slots[slot]], ends[slots[slot]]
    ):
        slot = (slot + np.uint64(1)) & mask
    return slot


@view_kernel
def find_in_order(words: Any, word_stops: Any, others: Any, other_stops: Any, found: Any) -> None:
    """Whether the words of each row are among its others, in their order."""
    word_data, word_starts, word_ends = words
    data, starts, ends = others
    word, other = 0, 0
    for row in range(len(word_stops)):
        while word < word_stops[row] and other < other_stops[row]:
            if _are_same(word_data, word_starts[word], word_ends[word], data, starts[other], ends[other]):
                word += 1
            other += 1
        found[row] = word == word_stops[row]
        word, other = word_stops[row], other_stops[row]
