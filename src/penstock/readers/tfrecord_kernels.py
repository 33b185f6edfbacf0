"""Compiled loops over the bytes of TFRecord files and of the tf.train.Example messages in them.

A record is its length (8 bytes), a checksum of that (4), its data, and a checksum of the data (4). The data is
Example{1: Features{1: {1: key, 2: Feature}, ...}}, where a Feature holds one of three lists: bytes (1), floats (2)
or int64 (3). All functions take an array of bytes and offsets into it. BAD stands for an offset where there is none.

Kernels never raise: what cannot be used is described in `failure` (reason, row, column, number), and they return
-1. Indexes are unsigned, so that NUMBA_BOUNDSCHECK=1 sees every access and no negative index wraps around.
"""

from typing import Any

import numpy as np

from penstock.runtime.crc32c import crc32c, load_64, masked_crc32c
from penstock.runtime.kernels import view_kernel

HEADER_BYTES, FOOTER_BYTES = 12, 4
BYTES_KIND, FLOAT_KIND, INT64_KIND = 1, 2, 3  # which list a feature holds: its field in Feature
BAD = -1
MISSING = -1  # the begin of a cell whose feature the record does not have

# Why a record cannot be used.
LENGTH_CHECK, TORN, DATA_CHECK, NOT_AN_EXAMPLE, IN_PARTS, OTHER_KIND, NOT_ONE_VALUE = range(1, 8)

_VARINT, _FIXED_64, _SIZED, _FIXED_32 = 0, 1, 2, 5  # wire types
_ONE = np.uint64((1 << 3) | _SIZED)  # the tag of field 1 where it is a message, a string or packed numbers
_TWO, _THREE = np.uint64((2 << 3) | _SIZED), np.uint64((3 << 3) | _SIZED)
_ONE_INT64, _ONE_FLOAT = np.uint64(1 << 3), np.uint64((1 << 3) | _FIXED_32)  # numbers that are not packed
_MAX_VARINT_BYTES = 10
_MAX_LENGTH = np.uint64(1 << 62)


@view_kernel
def _load_32(data: Any, at: Any) -> Any:
    word = np.uint32(0)
    for i in range(4):  # unrolled, and combined into one load
        word |= np.uint32(data[np.uint64(at + i)]) << np.uint32(8 * i)
    return np.uint32(word)


# The wire format.


@view_kernel
def _varint(data: Any, at: Any, end: Any) -> Any:
    """A number, and the offset after it."""
    value, shift = np.uint64(0), np.uint64(0)
    last = min(end, at + _MAX_VARINT_BYTES)
    while at < last:
        byte = np.uint64(data[np.uint64(at)])
        value |= (byte & np.uint64(127)) << shift
        at += 1
        if byte < np.uint64(128):
            return value, at
        shift += np.uint64(7)
    return value, BAD


@view_kernel
def _sized(data: Any, at: Any, end: Any) -> Any:
    """Where something that follows its size begins and ends; it ends at BAD if it does not fit."""
    size, begin = _varint(data, at, end)
    if begin == BAD or size > np.uint64(end - begin):
        return begin, BAD
    return begin, begin + np.int64(size)


@view_kernel
def _skip(data: Any, at: Any, end: Any, tag: Any) -> Any:
    """The offset after a field that means nothing here."""
    wire_type = np.int64(tag & np.uint64(7))
    if wire_type == _VARINT:
        return _varint(data, at, end)[1]
    if wire_type == _SIZED:
        return _sized(data, at, end)[1]
    size = 8 if wire_type == _FIXED_64 else 4
    if (wire_type != _FIXED_64 and wire_type != _FIXED_32) or at + size > end:
        return BAD
    return at + size


@view_kernel
def _next_message(data: Any, at: Any, end: Any) -> Any:
    """Where the next field 1 of a message begins and ends, other fields skipped; begins at `end`: there is none.

    It ends at BAD if it is not wire format.
    """
    while at < end:
        tag, at = _varint(data, at, end)
        if at == BAD:
            return at, BAD
        if tag == _ONE:
            return _sized(data, at, end)
        at = _skip(data, at, end, tag)
        if at == BAD:
            return at, BAD
    return end, end


@view_kernel
def _next_feature(data: Any, at: Any, end: Any) -> Any:
    """The next feature: where its key and its list stand, its kind, in how many parts, and the offset after it.

    Kind 0: it holds no list. The list ends at BAD: it is not wire format. The key ends at BAD: there is no further
    feature.
    """
    at, entry_end = _next_message(data, at, end)
    if entry_end == BAD:
        return at, at, at, BAD, 0, 0, at
    if at == end and entry_end == end:
        return at, BAD, at, at, 0, 0, end
    key_begin = key_end = value = value_end = at
    num_values = 0
    while at < entry_end:
        tag, at = _varint(data, at, entry_end)
        if at != BAD and tag == _ONE:
            key_begin, key_end = _sized(data, at, entry_end)
            at = key_end
        elif at != BAD and tag == _TWO:
            value, value_end = _sized(data, at, entry_end)
            at = value_end
            num_values += 1
        elif at != BAD:
            at = _skip(data, at, entry_end, tag)
        if at == BAD:
            return end, end, end, BAD, 0, 0, end
    begin, list_end, num_lists = value, value, 0
    kind: Any = 0
    while value < value_end:
        tag, value = _varint(data, value, value_end)
        if value != BAD and tag in (_ONE, _TWO, _THREE):
            field: Any = np.int64(tag >> np.uint64(3))
            num_lists = num_lists + 1 if field == kind else 1
            kind = field
            begin, list_end = _sized(data, value, value_end)
            value = list_end
        elif value != BAD:
            value = _skip(data, value, value_end, tag)
        if value == BAD:
            return end, end, end, BAD, 0, 0, end
    return key_begin, key_end, begin, list_end, kind, max(num_values, num_lists), entry_end


@view_kernel
def _short_feature(data: Any, at: Any, end: Any) -> Any:
    """The same for what nearly all entries are, a key, then one list, in under 128 bytes; else the list ends at BAD.

    Two tags and two sizes are read as one word. A leaf: a call of another function with `data` would have its
    references counted for every feature.
    """
    if at + 8 <= end:
        word = _load_32(data, at)
        entry_end = at + 2 + np.int64((word >> np.uint32(8)) & np.uint32(127))
        key = at + 4
        key_end = key + np.int64(word >> np.uint32(24))
        is_entry = (word & np.uint32(0x80FF80FF)) == np.uint32(0x000A000A)
        if is_entry and key_end + 4 <= entry_end and entry_end <= end:
            word = _load_32(data, key_end)
            kind = np.int64((word >> np.uint32(19)) & np.uint32(3))
            begin = key_end + 4
            is_list = key_end + 2 + np.int64((word >> np.uint32(8)) & np.uint32(127)) == entry_end
            is_list &= begin + np.int64(word >> np.uint32(24)) == entry_end
            if is_list and kind != 0 and (word & np.uint32(0x80E780FF)) == np.uint32(0x00020012):
                return key, key_end, begin, entry_end, kind, 1, entry_end
    return at, at, at, BAD, 0, 0, at


@view_kernel
def _data_end(data: Any, at: Any) -> Any:
    """Where the data of the record ends whose header begins here; BAD: its length is damaged."""
    length = load_64(data, at)
    if masked_crc32c(data, at, at + 8) != _load_32(data, at + 8) or length > _MAX_LENGTH:
        return BAD
    return at + HEADER_BYTES + np.int64(length)


@view_kernel
def _fail(failure: Any, reason: Any, row: Any, column: Any, number: Any) -> Any:
    failure[0], failure[1], failure[2], failure[3] = reason, row, column, number
    return -1


@view_kernel
def find_records(data: Any, ends: Any, failure: Any) -> Any:
    """Fill `ends` with the ends of the records that begin in `data`, the last perhaps outside; returns how many."""
    count = at = 0
    while count < len(ends) and at + HEADER_BYTES <= len(data):
        data_end = _data_end(data, at)
        if data_end == BAD:
            return _fail(failure, LENGTH_CHECK, count, -1, 0)
        at = data_end + FOOTER_BYTES
        ends[count] = at
        count += 1
    return count


# The wanted features of records: the bytes in which the list of a feature of a row stands are a cell.


@view_kernel
def _same(data: Any, begin: Any, other: Any, other_begin: Any, size: Any) -> Any:
    for i in range(size):  # noqa: SIM110 - a generator would cost more than the comparison
        if data[np.uint64(begin + i)] != other[np.uint64(other_begin + i)]:
            return False
    return True


@view_kernel
def _slot(data: Any, begin: Any, end: Any, slots: Any, key_data: Any, key_offsets: Any) -> Any:
    """The slot of the open-addressing table that holds this key, or the free one where it belongs."""
    slot = np.int64(crc32c(data, begin, end)) & (len(slots) - 1)
    while slots[slot] >= 0:
        key_begin, key_end = key_offsets[slots[slot]], key_offsets[slots[slot] + 1]
        if key_end - key_begin == end - begin and _same(data, begin, key_data, key_begin, end - begin):
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@view_kernel
def fill_slots(key_data: Any, key_offsets: Any, slots: Any) -> None:
    """Put every key into the table `slots` (all -1, a power of two long, larger than the number of keys)."""
    for key in range(len(key_offsets) - 1):
        begin, end = key_offsets[key], key_offsets[key + 1]
        slots[_slot(key_data, begin, end, slots, key_data, key_offsets)] = key


@view_kernel
def locate(  # noqa: C901
    data: Any, start: Any, keys: Any, kinds: Any, remembered: Any, cells: Any, new_keys: Any, failure: Any
) -> Any:
    """Check records from the one at `start` on, and fill the cells of their rows; returns the offset after them.

    The columns have the `keys` of `fill_slots`, and hold lists of `kinds`. Records mostly have their keys in the order
    of the one before, so that comparing a key with the one that stood there finds its column. `new_keys` gets where
    other keys begin and end and the kinds of their lists, as far as it has rows; some keys come more than once.
    """
    key_data, key_offsets, slots = keys
    num_new = 0
    at, end = start, len(data)
    for row in range(len(cells)):
        position = 0
        data_end = _data_end(data, at) if at + HEADER_BYTES <= end else end
        if data_end == BAD:
            return _fail(failure, LENGTH_CHECK, row, -1, 0)
        if data_end + FOOTER_BYTES > end:
            return _fail(failure, TORN, row, -1, 0)
        if masked_crc32c(data, at + HEADER_BYTES, data_end) != _load_32(data, data_end):
            return _fail(failure, DATA_CHECK, row, -1, 0)
        for column in range(len(kinds)):
            cells[row, column, 0] = MISSING
        at += HEADER_BYTES
        while at < data_end:
            at, features_end = _next_message(data, at, data_end)
            if features_end == BAD:
                return _fail(failure, NOT_AN_EXAMPLE, row, -1, 0)
            while at < features_end:
                found = _short_feature(data, at, features_end)
                if found[3] == BAD:
                    found = _next_feature(data, at, features_end)
                key, key_end, begin, list_end, kind, num_parts, at = found
                if list_end == BAD:
                    return _fail(failure, NOT_AN_EXAMPLE, row, -1, 0)
                if key_end == BAD:
                    break
                known, size = min(position, len(remembered) - 1), key_end - key
                position += 1
                if remembered[known, 1] == size and _same(data, key, data, remembered[known, 0], size):
                    column = remembered[known, 2]
                else:
                    column = slots[_slot(data, key, key_end, slots, key_data, key_offsets)]
                    remembered[known, 0], remembered[known, 2] = key, column
                    # A new key without a list is looked at again: other records may have one.
                    remembered[known, 1] = size if column >= 0 or kind != 0 else -1
                    if column < 0 and kind != 0 and num_new < len(new_keys):
                        new_keys[num_new, 0], new_keys[num_new, 1], new_keys[num_new, 2] = key, key_end, kind
                        num_new += 1
                if column < 0:
                    continue
                if num_parts > 1:
                    return _fail(failure, IN_PARTS, row, column, 0)
                if kind != 0 and kind != kinds[column]:
                    return _fail(failure, OTHER_KIND, row, column, kind)
                cells[row, column, 0] = begin if kind != 0 else MISSING
                cells[row, column, 1] = list_end
        at = data_end + FOOTER_BYTES
    return at


# The values of lists. Numbers stand packed, or with a tag before each; bytes have a tag and a size before each value.


@view_kernel
def _count_list(data: Any, at: Any, end: Any, kind: Any) -> Any:
    """How many values a list has, BAD: it is not wire format; and of bytes, how many of these."""
    count: Any = 0
    num_bytes = 0
    while at < end:
        tag, at = _varint(data, at, end)
        if at == BAD:
            return BAD, 0
        if tag == _ONE:
            begin, at = _sized(data, at, end)
            if at == BAD or (kind == FLOAT_KIND and (at - begin) % 4 != 0):
                return BAD, 0
            if kind == INT64_KIND:
                if begin < at and data[np.uint64(at - 1)] >= 128:
                    return BAD, 0
                for byte in range(begin, at):
                    count += np.int64(data[np.uint64(byte)] < 128)
            else:
                count += 1 if kind == BYTES_KIND else (at - begin) // 4
                num_bytes += at - begin
        else:
            at = _skip(data, at, end, tag)
            if at == BAD:
                return BAD, 0
            count += np.int64(kind == INT64_KIND and tag == _ONE_INT64)
            count += np.int64(kind == FLOAT_KIND and tag == _ONE_FLOAT)
    return count, num_bytes


@view_kernel
def _put_numbers(data: Any, at: Any, end: Any, kind: Any, values: Any, index: Any) -> Any:
    """Write the numbers of a list that was counted from values[index] on; the index after them, or BAD."""
    while at < end:
        tag, at = _varint(data, at, end)
        stop = at
        if tag == _ONE:
            at, stop = _sized(data, at, end)
        elif tag == (_ONE_FLOAT if kind == FLOAT_KIND else _ONE_INT64):
            stop = at + 1
        else:
            at = stop = _skip(data, at, end, tag)
        while at < stop:
            if kind == FLOAT_KIND:
                values[np.uint64(index)] = _load_32(data, at)
                at += 4
            else:
                value, at = _varint(data, at, end)
                if at == BAD:
                    return BAD
                values[np.uint64(index)] = np.int64(value)
            index += 1
    return index


@view_kernel
def _short_varint(data: Any, end: Any, num_bytes: Any) -> Any:
    """The number of at most eight bytes that ends at an offset, and whether it is one.

    All bytes at once: how many an id has is a coin toss, and a branch on it takes a third of the time. The eight
    bytes before the end of a list are always bytes of its record.
    """
    high_bits = np.uint64(0x8080808080808080)  # of all bytes of a number but the last
    word = load_64(data, end - 8) >> np.uint64(64 - 8 * num_bytes)
    wanted = high_bits >> np.uint64(72 - 8 * num_bytes) if num_bytes > 1 else np.uint64(0)
    is_one = (word & high_bits) == wanted
    word = (word & np.uint64(0x007F007F007F007F)) | ((word & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
    word = (word & np.uint64(0x00003FFF00003FFF)) | ((word & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    return (word & np.uint64(0x0FFFFFFF)) | ((word & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4)), is_one


@view_kernel
def _one_number(data: Any, at: Any, end: Any, kind: Any) -> Any:
    """The bits of the number of a list that holds one and nothing else, and whether it does."""
    size = end - at
    if size < 2:
        return np.uint64(0), False
    tag = np.uint64(data[np.uint64(at)])
    is_packed = tag == _ONE and size > 2 and np.int64(data[np.uint64(at + 1)]) == size - 2
    if kind == FLOAT_KIND:
        is_one = (is_packed and size == 6) or (size == 5 and tag == _ONE_FLOAT)
        return np.uint64(_load_32(data, end - 4)) if is_one else np.uint64(0), is_one
    if is_packed and size <= 10:
        return _short_varint(data, end, size - 2)
    if is_packed or tag == _ONE_INT64:
        value, after = _varint(data, at + 2 if is_packed else at + 1, end)
        return value, after == end
    return np.uint64(0), False


@view_kernel
def take_scalars(
    data: Any, cells: Any, columns: Any, kind: Any, values: Any, present: Any, failure: Any
) -> Any:
    """Fill values[i] and present[i] of columns[i], which has at most one number in each row; floats as bits."""
    for row in range(len(cells)):
        for i in range(len(columns)):
            column = columns[i]
            begin, end = np.int64(cells[row, column, 0]), np.int64(cells[row, column, 1])
            present[i, row], values[i, row] = 0, 0
            if begin == MISSING:
                continue
            value, is_one = _one_number(data, begin, end, kind)
            values[i, row] = np.int64(value)
            if not is_one:
                count = _count_list(data, begin, end, kind)[0]
                if count > 1:
                    return _fail(failure, NOT_ONE_VALUE, row, column, count)
                if count == BAD or _put_numbers(data, begin, end, kind, values[i], row) == BAD:
                    return _fail(failure, NOT_AN_EXAMPLE, row, column, 0)
                if count == 0:
                    continue
            present[i, row] = 1
    return 0


@view_kernel
def count_values(
    data: Any, cells: Any, column: Any, kind: Any, lengths: Any, sizes: Any, failure: Any
) -> Any:
    """The number of values of each row of a column, -1 where the feature is missing; of bytes also how many."""
    for row in range(len(cells)):
        begin, end = np.int64(cells[row, column, 0]), np.int64(cells[row, column, 1])
        lengths[row], sizes[row] = -1, 0
        if begin != MISSING:
            lengths[row], sizes[row] = _count_list(data, begin, end, kind)
            if lengths[row] == BAD:
                return _fail(failure, NOT_AN_EXAMPLE, row, column, 0)
    return 0


@view_kernel
def take_numbers(data: Any, cells: Any, column: Any, kind: Any, values: Any, failure: Any) -> Any:
    """Fill `values` with all counted numbers of a column, row after row; floats as bits."""
    index: Any = 0
    for row in range(len(cells)):
        begin, end = np.int64(cells[row, column, 0]), np.int64(cells[row, column, 1])
        if begin != MISSING:
            index = _put_numbers(data, begin, end, kind, values, index)
            if index == BAD:
                return _fail(failure, NOT_AN_EXAMPLE, row, column, 0)
    return 0


@view_kernel
def take_bytes(data: Any, cells: Any, column: Any, ends: Any, values: Any) -> None:
    """Fill `values` with all counted bytes of a column, row after row, and `ends` with where each value ends."""
    out = index = 0
    for row in range(len(cells)):
        at, end = np.int64(cells[row, column, 0]), np.int64(cells[row, column, 1])
        while at != MISSING and at < end:
            tag, at = _varint(data, at, end)
            if tag == _ONE:
                begin, at = _sized(data, at, end)
                for i in range(at - begin):
                    values[np.uint64(out + i)] = data[np.uint64(begin + i)]
                out += at - begin
                ends[np.uint64(index)] = out
                index += 1
            else:
                at = _skip(data, at, end, tag)
