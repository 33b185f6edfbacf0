"""A compiled loop that finds out which features some records have."""

from typing import Any

import numpy as np

from penstock.readers.tfrecord.crc32c import crc32c, masked_crc32c
from penstock.readers.tfrecord.locate import DATA_CHECK, IN_PARTS, LENGTH_CHECK, NOT_AN_EXAMPLE, fail, same
from penstock.readers.tfrecord.machine import address_of, load_32
from penstock.readers.tfrecord.take import count_list
from penstock.readers.tfrecord.wire import (
    BAD,
    FOOTER_BYTES,
    HEADER_BYTES,
    data_end_of,
    next_feature,
    next_message,
)
from penstock.runtime.kernels import kernel

KEY_BEGIN, KEY_END, KINDS, LEAST, MOST, NUM_VALUES, NUM_BYTES = range(7)  # what a row of `found` holds
_MOST_VALUES = 2**62


@kernel
def catalogue(data: Any, num_rows: Any, slots: Any, found: Any, failure: Any) -> Any:
    """Fills a row of `found` for each key of the records in `data`; gives the number of keys.

    Where the key stands, which kinds of lists it has (a bit for each), how many values at least, at most and in
    all, and of texts how many bytes. Keys without a list are left out, and those for which `found` has no room;
    `slots` is all -1, a power of two long, and longer than `found`. What is wrong with the last record that cannot
    be used stands in `failure`; its reason is 0 if there is none.
    """
    base = address_of(data)
    at, end, num_keys = base, base + len(data), 0
    for row in range(num_rows):
        data_end = data_end_of(at) if at + HEADER_BYTES <= end else BAD
        if data_end == BAD or data_end + FOOTER_BYTES > end:
            fail(failure, LENGTH_CHECK, row, -1, 0)
            return num_keys
        reason, at = 0, at + HEADER_BYTES
        if masked_crc32c(at, data_end) != load_32(data_end):
            reason = DATA_CHECK
        while at < data_end and reason == 0:
            at, features_end = next_message(at, data_end)
            while at < features_end and reason == 0:
                key_begin, key_end, begin, list_end, kind, num_parts, at = next_feature(at, features_end)
                num_values, num_bytes = count_list(begin, list_end, kind)
                if list_end == BAD or num_values == BAD:
                    reason = NOT_AN_EXAMPLE
                elif num_parts > 1:
                    reason = IN_PARTS
                elif key_end != BAD and kind != 0:
                    key = _key(base, key_begin, key_end, slots, found, num_keys)
                    if key == num_keys:
                        num_keys += 1
                    if key >= 0:
                        _add(found[key], kind, num_values, num_bytes)
            if features_end == BAD:
                reason = NOT_AN_EXAMPLE
        if reason != 0:
            fail(failure, reason, row, -1, 0)
        at = data_end + FOOTER_BYTES
    return num_keys


@kernel
def _key(base: Any, begin: Any, end: Any, slots: Any, found: Any, num_keys: Any) -> Any:
    """The row of a key, a new one if need be; -1: there is no room."""
    slot, size = np.int64(crc32c(begin, end)) & (len(slots) - 1), end - begin
    while slots[slot] >= 0:
        key = slots[slot]
        if found[key, KEY_END] - found[key, KEY_BEGIN] == size and same(
            begin, base + found[key, KEY_BEGIN], size
        ):
            return key
        slot = (slot + 1) & (len(slots) - 1)
    if num_keys == len(found):
        return -1
    slots[slot] = num_keys
    found[num_keys, KEY_BEGIN], found[num_keys, KEY_END] = begin - base, end - base
    found[num_keys, LEAST] = _MOST_VALUES
    return num_keys


@kernel
def _add(found: Any, kind: Any, num_values: Any, num_bytes: Any) -> None:
    found[KINDS] |= 1 << kind
    found[LEAST] = min(found[LEAST], num_values)
    found[MOST] = max(found[MOST], num_values)
    found[NUM_VALUES] += num_values
    found[NUM_BYTES] += num_bytes
