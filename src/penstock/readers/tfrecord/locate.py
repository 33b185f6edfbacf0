"""Compiled loops that find records in bytes, and the wanted features in records.

`locate` goes over the bytes once, checks them, and notes in which bytes the list of each wanted feature of each row
stands: its cell. Nothing raises in here: what cannot be used is described in `failure` (reason, row, column, and a
number), and the kernel returns -1.
"""

from typing import Any

import numpy as np

from penstock.readers.tfrecord.crc32c import crc32c, masked_crc32c
from penstock.readers.tfrecord.machine import address_of, load_8, load_32, load_64
from penstock.readers.tfrecord.wire import (
    BAD,
    FOOTER_BYTES,
    HEADER_BYTES,
    data_end_of,
    next_feature,
    next_message,
)
from penstock.runtime.kernels import kernel

MISSING = -1  # the begin of a cell whose feature the record does not have

# Why a record cannot be used.
LENGTH_CHECK, TORN, DATA_CHECK, NOT_AN_EXAMPLE, IN_PARTS, OTHER_KIND, NOT_ONE_VALUE = range(1, 8)

_REMEMBERED_KEYS = 4096


@kernel
def fail(failure: Any, reason: Any, row: Any, column: Any, number: Any) -> Any:
    """Describes what cannot be used; gives what the kernel returns then."""
    failure[0], failure[1], failure[2], failure[3] = reason, row, column, number
    return -1


@kernel
def scan(data: Any, ends: Any, failure: Any) -> Any:
    """The ends of the records that begin in `data`; the last may lie outside of it.

    Gives their number, at most as many as `ends` holds.
    """
    base = address_of(data)
    count, at = 0, base
    while count < len(ends) and at + HEADER_BYTES <= base + len(data):
        data_end = data_end_of(at)
        if data_end == BAD:
            return fail(failure, LENGTH_CHECK, count, -1, 0)
        at = data_end + FOOTER_BYTES
        ends[count] = at - base
        count += 1
    return count


@kernel
def same(begin: Any, other: Any, size: Any) -> Any:
    """Whether so many bytes at two addresses are the same."""
    for i in range(size):  # noqa: SIM110 - a generator would cost more than the comparison
        if load_8(begin + i) != load_8(other + i):
            return False
    return True


@kernel
def _slot(begin: Any, end: Any, slots: Any, num_slots: Any, key_data: Any, key_offsets: Any) -> Any:
    """The slot of the open-addressing table that holds this key, or the free one where it belongs."""
    slot = np.int64(crc32c(begin, end)) & (num_slots - 1)
    while True:
        key = np.int64(load_64(slots + 8 * slot))
        if key < 0:
            return slot
        key_begin = np.int64(load_64(key_offsets + 8 * key))
        key_end = np.int64(load_64(key_offsets + 8 * key + 8))
        if key_end - key_begin == end - begin and same(begin, key_data + key_begin, end - begin):
            return slot
        slot = (slot + 1) & (num_slots - 1)


@kernel
def fill_slots(key_data: Any, key_offsets: Any, slots: Any) -> None:
    """Puts every key into the table `slots` (all -1, a power of two long, larger than the number of keys)."""
    keys, offsets, table = address_of(key_data), address_of(key_offsets), address_of(slots)
    for key in range(len(key_offsets) - 1):
        begin, end = keys + key_offsets[key], keys + key_offsets[key + 1]
        slots[_slot(begin, end, table, len(slots), keys, offsets)] = key


@kernel
def locate(  # noqa: C901
    data: Any,
    start: Any,
    num_rows: Any,
    key_data: Any,
    key_offsets: Any,
    slots: Any,
    kinds: Any,
    cells: Any,
    failure: Any,
) -> Any:
    """Checks records from the one at `start` on, and fills the cells of their rows; gives the place after them.

    The columns have the names of `fill_slots`, and hold lists of `kinds`. Long, because parts of it that take
    arrays would cost several times the work. Records mostly have their keys in the order of the one before, so
    that comparing a key with the one that stood there finds its column.
    """
    base, keys = address_of(data), address_of(key_data)
    offsets, table = address_of(key_offsets), address_of(slots)
    remembered = np.full((_REMEMBERED_KEYS, 3), -1)
    at, end = base + start, base + len(data)
    for row in range(num_rows):
        record, position = at, 0
        data_end = data_end_of(at) if at + HEADER_BYTES <= end else end
        if data_end == BAD:
            return fail(failure, LENGTH_CHECK, row, -1, 0)
        if data_end + FOOTER_BYTES > end:
            return fail(failure, TORN, row, -1, 0)
        if masked_crc32c(at + HEADER_BYTES, data_end) != load_32(data_end):
            return fail(failure, DATA_CHECK, row, -1, 0)
        for column in range(len(kinds)):
            cells[row, column, 0] = MISSING
        at = record + HEADER_BYTES
        while at < data_end:
            at, features_end = next_message(at, data_end)
            if features_end == BAD:
                return fail(failure, NOT_AN_EXAMPLE, row, -1, 0)
            while at < features_end:
                key_begin, key_end, begin, list_end, kind, num_parts, at = next_feature(at, features_end)
                if list_end == BAD:
                    return fail(failure, NOT_AN_EXAMPLE, row, -1, 0)
                if key_end == BAD:
                    break
                place, size = min(position, _REMEMBERED_KEYS - 1), key_end - key_begin
                position += 1
                if remembered[place, 1] == size and same(key_begin, remembered[place, 0], size):
                    column = remembered[place, 2]
                else:
                    column = slots[_slot(key_begin, key_end, table, len(slots), keys, offsets)]
                    remembered[place, 0], remembered[place, 1], remembered[place, 2] = key_begin, size, column
                if column < 0:
                    continue
                if num_parts > 1:
                    return fail(failure, IN_PARTS, row, column, 0)
                if kind != 0 and kind != kinds[column]:
                    return fail(failure, OTHER_KIND, row, column, kind)
                cells[row, column, 0] = begin - base if kind != 0 else MISSING
                cells[row, column, 1] = list_end - base
        at = data_end + FOOTER_BYTES
    return at - base
