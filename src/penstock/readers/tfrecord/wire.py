"""The wire format of records and of the tf.train.Example in them, compiled.

A record is its length (8 bytes), a checksum of that (4), its data, and a checksum of the data (4). The data is
Example{1: Features{1: {1: key, 2: Feature}, ...}}, where a Feature holds one of three lists: bytes (1), floats (2)
or int64 (3). All places are addresses (`machine.py` says why), and BAD stands for a place where there is none.
"""

from typing import Any

import numpy as np

from penstock.readers.tfrecord.crc32c import masked_crc32c
from penstock.readers.tfrecord.machine import load_8, load_32, load_64
from penstock.runtime.kernels import kernel

HEADER_BYTES, FOOTER_BYTES = 12, 4
BYTES_KIND, FLOAT_KIND, INT64_KIND = 1, 2, 3  # which list a feature holds: its field in Feature

BAD = -1
_VARINT, _FIXED_64, _SIZED, _FIXED_32 = 0, 1, 2, 5  # wire types
ONE = np.uint64((1 << 3) | _SIZED)  # the tag of field 1 where it is a message, a text or packed values
_TWO = np.uint64((2 << 3) | _SIZED)
_THREE = np.uint64((3 << 3) | _SIZED)
_LONGEST_VARINT = 10
_MOST_LENGTH = np.uint64(1 << 62)

# Two tags and two sizes as one word of four bytes, for entries in which all sizes are below 128.
_TAGS_AND_HIGH_BITS, _TAGS_BUT_KIND_AND_HIGH_BITS = np.uint32(0x80FF80FF), np.uint32(0x80E780FF)
_ENTRY_AND_KEY, _VALUE_AND_LIST = np.uint32(0x000A000A), np.uint32(0x00020012)


@kernel
def varint(at: Any, end: Any) -> Any:
    """The number at a place, and the place after it."""
    value, shift = np.uint64(0), np.uint64(0)
    last = min(end, at + _LONGEST_VARINT)
    while at < last:
        byte = np.uint64(load_8(at))
        value |= (byte & np.uint64(127)) << shift
        at += 1
        if byte < np.uint64(128):
            return value, at
        shift += np.uint64(7)
    return value, BAD


@kernel
def sized(at: Any, end: Any) -> Any:
    """Where something that follows its size begins and ends; it ends at BAD if it does not fit."""
    size, begin = varint(at, end)
    if begin == BAD or size > np.uint64(end - begin):
        return begin, BAD
    return begin, begin + np.int64(size)


@kernel
def skip(at: Any, end: Any, tag: Any) -> Any:
    """The place after a field that means nothing here."""
    wire_type = np.int64(tag & np.uint64(7))
    if wire_type == _VARINT:
        return varint(at, end)[1]
    if wire_type == _SIZED:
        return sized(at, end)[1]
    size = 8 if wire_type == _FIXED_64 else 4
    if (wire_type != _FIXED_64 and wire_type != _FIXED_32) or at + size > end:
        return BAD
    return at + size


@kernel
def next_message(at: Any, end: Any) -> Any:
    """Where the next field 1 of a message begins and ends, other fields skipped; begins at `end`: there is none.

    It ends at BAD if it is not wire format.
    """
    while at < end:
        tag, at = varint(at, end)
        if at == BAD:
            return at, BAD
        if tag == ONE:
            return sized(at, end)
        at = skip(at, end, tag)
        if at == BAD:
            return at, BAD
    return end, end


@kernel
def entry(at: Any, end: Any) -> Any:
    """Where key and Feature of a map entry stand, and how many Features; the key ends at BAD: not wire format."""
    key_begin = key_end = value_begin = value_end = at
    num_values = 0
    while at < end:
        tag, at = varint(at, end)
        if at == BAD:
            return key_begin, BAD, value_begin, value_end, num_values
        if tag == ONE:
            key_begin, key_end = sized(at, end)
            at = key_end
        elif tag == _TWO:
            value_begin, value_end = sized(at, end)
            at = value_end
            num_values += 1
        else:
            at = skip(at, end, tag)
        if at == BAD:
            return key_begin, BAD, value_begin, value_end, num_values
    return key_begin, key_end, value_begin, value_end, num_values


@kernel
def feature_list(at: Any, end: Any) -> Any:
    """Where the list of a Feature stands, its kind (0: none), and how many there are of this kind.

    It ends at BAD if it is not wire format.
    """
    begin, list_end, num_lists = at, at, 0
    kind: Any = 0
    while at < end:
        tag, at = varint(at, end)
        if at == BAD:
            return begin, BAD, kind, num_lists
        if tag in (ONE, _TWO, _THREE):
            field: Any = np.int64(tag >> np.uint64(3))
            num_lists = num_lists + 1 if field == kind else 1
            kind = field
            begin, list_end = sized(at, end)
            at = list_end
        else:
            at = skip(at, end, tag)
        if at == BAD:
            return begin, BAD, kind, num_lists
    return begin, list_end, kind, num_lists


@kernel
def short_entry(at: Any, end: Any) -> Any:
    """The same as `entry` and `feature_list` for what nearly all entries are: key, then one list, in under 128 bytes.

    Where key and list stand, its kind, and where the entry ends; the entry ends at BAD if it is another one.
    """
    if at + 8 <= end:
        word = load_32(at)
        entry_end = at + 2 + np.int64((word >> np.uint32(8)) & np.uint32(127))
        key_begin = at + 4
        key_end = key_begin + np.int64(word >> np.uint32(24))
        if (word & _TAGS_AND_HIGH_BITS) == _ENTRY_AND_KEY and key_end + 4 <= entry_end and entry_end <= end:
            word = load_32(key_end)
            kind = np.int64((word >> np.uint32(19)) & np.uint32(3))
            begin = key_end + 4
            is_whole = key_end + 2 + np.int64((word >> np.uint32(8)) & np.uint32(127)) == entry_end
            is_whole &= begin + np.int64(word >> np.uint32(24)) == entry_end
            if is_whole and kind != 0 and (word & _TAGS_BUT_KIND_AND_HIGH_BITS) == _VALUE_AND_LIST:
                return key_begin, key_end, begin, kind, entry_end
    return at, at, at, 0, BAD


@kernel
def next_feature(at: Any, end: Any) -> Any:
    """The next feature of a Features message: where its key and its list stand, its kind, and the place after it.

    Kind 0: it holds no list. The list ends at BAD: it is not wire format. The key ends at BAD: there is no further
    feature. And in how many parts the list stands: no library writes more than one.
    """
    key_begin, key_end, begin, kind, list_end = short_entry(at, end)
    if list_end != BAD:
        return key_begin, key_end, begin, list_end, kind, 1, list_end
    at, entry_end = next_message(at, end)
    if entry_end == BAD:
        return at, at, at, BAD, 0, 0, at
    if at == end and entry_end == end:
        return at, BAD, at, at, 0, 0, end
    key_begin, key_end, value_begin, value_end, num_values = entry(at, entry_end)
    if key_end == BAD:
        return at, at, at, BAD, 0, 0, at
    begin, list_end, kind, num_lists = feature_list(value_begin, value_end)
    return key_begin, key_end, begin, list_end, kind, max(num_values, num_lists), entry_end


@kernel
def data_end_of(at: Any) -> Any:
    """Where the data of the record ends whose header begins here; BAD: its length is damaged."""
    length = load_64(at)
    if masked_crc32c(at, at + 8) != load_32(at + 8) or length > _MOST_LENGTH:
        return BAD
    return at + HEADER_BYTES + np.int64(length)
