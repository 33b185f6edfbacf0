"""A compiled loop that finds out which features some records have."""

from typing import Any

import numpy as np
from numba import njit

from penstock.readers.tfrecord.crc32c import crc32c, masked_crc32c
from penstock.readers.tfrecord.locate import (
    DATA_CHECK,
    IN_PARTS,
    LENGTH_CHECK,
    NOT_AN_EXAMPLE,
    TORN,
    fail,
    same,
)
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

_compiled = njit(cache=True, nogil=True)

KEY_BEGIN, KEY_END, KINDS, LEAST, MOST, NUM_VALUES, NUM_BYTES = range(7)  # what a row of `found` holds


@_compiled
def catalogue(data: Any, num_rows: Any, slots: Any, found: Any, failure: Any) -> Any:  # noqa: C901
    """Fills a row of `found` for each key of the records in `data`; gives the number of keys, -1: see `failure`.

    Where the key stands, which kinds of lists it has (a bit for each), how many values at least, at most and in
    all, and of texts how many bytes. Keys without a list are left out, and those for which `found` has no room;
    `slots` is all -1, a power of two long, and longer than `found`.
    """
    base = address_of(data)
    at, end, num_keys = base, base + len(data), 0
    for row in range(num_rows):
        data_end = data_end_of(at) if at + HEADER_BYTES <= end else end
        if data_end == BAD:
            return fail(failure, LENGTH_CHECK, row, -1, 0)
        if data_end + FOOTER_BYTES > end:
            return fail(failure, TORN, row, -1, 0)
        if masked_crc32c(at + HEADER_BYTES, data_end) != load_32(data_end):
            return fail(failure, DATA_CHECK, row, -1, 0)
        at += HEADER_BYTES
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
                if num_parts > 1:
                    return fail(failure, IN_PARTS, row, -1, 0)
                if kind == 0:
                    continue
                num_values, num_bytes = count_list(begin, list_end, kind)
                if num_values == BAD:
                    return fail(failure, NOT_AN_EXAMPLE, row, -1, 0)
                slot = np.int64(crc32c(key_begin, key_end)) & (len(slots) - 1)
                size = key_end - key_begin
                key = slots[slot]
                while key >= 0 and not (
                    found[key, KEY_END] - found[key, KEY_BEGIN] == size
                    and same(key_begin, base + found[key, KEY_BEGIN], size)
                ):
                    slot = (slot + 1) & (len(slots) - 1)
                    key = slots[slot]
                if key < 0:
                    if num_keys == len(found):
                        continue
                    key = slots[slot] = num_keys
                    found[key, KEY_BEGIN], found[key, KEY_END] = key_begin - base, key_end - base
                    found[key, LEAST] = num_values
                    num_keys += 1
                found[key, KINDS] |= 1 << kind
                found[key, LEAST] = min(found[key, LEAST], num_values)
                found[key, MOST] = max(found[key, MOST], num_values)
                found[key, NUM_VALUES] += num_values
                found[key, NUM_BYTES] += num_bytes
        at = data_end + FOOTER_BYTES
    return num_keys
