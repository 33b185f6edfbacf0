"""Compiled loops from the cells that `locate` found to the values of columns.

A list of numbers stands packed, or with a tag before each number; a list of bytes has a tag and a size before each
value. `count` says how many values each row has, so that room can be made for exactly these; the others fill it.
Nothing raises in here, as in `locate.py`.
"""

from typing import Any

import numpy as np

from penstock.readers.tfrecord.locate import MISSING, NOT_AN_EXAMPLE, NOT_ONE_VALUE, fail
from penstock.readers.tfrecord.machine import address_of, copy_bytes, load_8, load_32, load_64, store_64
from penstock.readers.tfrecord.wire import BAD, BYTES_KIND, FLOAT_KIND, INT64_KIND, ONE, sized, skip, varint
from penstock.runtime.kernels import kernel

_ONE_INT64 = np.uint64(1 << 3)  # the tag of a number that is not packed
_ONE_FLOAT = np.uint64((1 << 3) | 5)
_HIGH_BITS = np.uint64(0x8080808080808080)  # of all bytes of a number but the last


@kernel
def _count_varints(at: Any, end: Any) -> Any:
    count: Any = 0
    for place in range(at, end):
        count += np.int64(load_8(place) < 128)
    return count if at == end or load_8(end - 1) < 128 else BAD


@kernel
def count_list(at: Any, end: Any, kind: Any) -> Any:
    """How many values a list has, BAD: it is not wire format; and of bytes, how many of these."""
    count: Any = 0
    num_bytes = 0
    while at < end:
        tag, at = varint(at, end)
        if at == BAD:
            return BAD, 0
        if tag == ONE:
            begin, at = sized(at, end)
            if at == BAD or (kind == FLOAT_KIND and (at - begin) % 4 != 0):
                return BAD, 0
            if kind == INT64_KIND:
                added = _count_varints(begin, at)
                if added == BAD:
                    return BAD, 0
                count += added
            else:
                count += 1 if kind == BYTES_KIND else (at - begin) // 4
                num_bytes += at - begin
        else:
            at = skip(at, end, tag)
            if at == BAD:
                return BAD, 0
            count += np.int64(kind == INT64_KIND and tag == _ONE_INT64)
            count += np.int64(kind == FLOAT_KIND and tag == _ONE_FLOAT)
    return count, num_bytes


@kernel
def _put_int64s(at: Any, end: Any, out: Any) -> Any:
    """Writes the values of a list that was counted; the address after them, or BAD."""
    while at < end:
        tag, at = varint(at, end)
        stop = at
        if tag == ONE:
            at, stop = sized(at, end)
        elif tag != _ONE_INT64:
            at = stop = skip(at, end, tag)
        while at < stop or tag == _ONE_INT64:
            value, at = varint(at, end)
            if at == BAD:
                return BAD
            store_64(out, value)
            out += 8
            if tag == _ONE_INT64:
                break
    return out


@kernel
def _put_floats(at: Any, end: Any, out: Any) -> Any:
    """The same for floats."""
    while at < end:
        tag, at = varint(at, end)
        begin = at
        if tag == ONE:
            begin, at = sized(at, end)
        else:
            at = skip(at, end, tag)
        if tag in (ONE, _ONE_FLOAT):
            copy_bytes(out, begin, at - begin)
            out += at - begin
    return out


@kernel
def _varint_before(end: Any, num_bytes: Any) -> Any:
    """The number of at most eight bytes that ends at a place, and whether it is one.

    All bytes at once: how many an id has is a coin toss, and a branch on it takes a third of the time. The eight
    bytes before the end of a list are always bytes of its record.
    """
    word = load_64(end - 8) >> np.uint64(64 - 8 * num_bytes)
    wanted = _HIGH_BITS >> np.uint64(72 - 8 * num_bytes) if num_bytes > 1 else np.uint64(0)
    is_one = (word & _HIGH_BITS) == wanted
    word = (word & np.uint64(0x007F007F007F007F)) | ((word & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
    word = (word & np.uint64(0x00003FFF00003FFF)) | ((word & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    return (word & np.uint64(0x0FFFFFFF)) | ((word & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4)), is_one


@kernel
def _one_int64(at: Any, end: Any) -> Any:
    """The value of a list that holds one and nothing else, and whether it does."""
    size = end - at
    is_packed = size > 2 and load_8(at) == ONE and np.int64(load_8(at + 1)) == size - 2
    if is_packed and size <= 10:
        return _varint_before(end, size - 2)
    if is_packed or (size > 1 and load_8(at) == _ONE_INT64):
        value, after = varint(at + 2 if is_packed else at + 1, end)
        return value, after == end
    return np.uint64(0), False


@kernel
def _one_float(at: Any, end: Any) -> Any:
    """The bits of the value of a list that holds one and nothing else, and whether it does."""
    size = end - at
    is_packed = size == 6 and load_8(at) == ONE and load_8(at + 1) == 4
    if is_packed or (size == 5 and load_8(at) == _ONE_FLOAT):
        return load_32(end - 4), True
    return np.uint32(0), False


@kernel
def take_int64_scalars(data: Any, cells: Any, columns: Any, values: Any, present: Any, failure: Any) -> Any:
    """Fills values[i] and present[i] of columns[i], which has at most one value in each row."""
    base, out = address_of(data), address_of(values)
    for row in range(len(cells)):
        for i in range(len(columns)):
            column = columns[i]
            begin, end = base + cells[row, column, 0], base + cells[row, column, 1]
            present[i, row], values[i, row] = 0, 0
            if begin == base + MISSING:
                continue
            value, is_one = _one_int64(begin, end)
            if not is_one:
                count = count_list(begin, end, INT64_KIND)[0]
                if count == BAD:
                    return fail(failure, NOT_AN_EXAMPLE, row, column, 0)
                if count > 1:
                    return fail(failure, NOT_ONE_VALUE, row, column, count)
                if count == 0:
                    continue
                if _put_int64s(begin, end, out + 8 * (i * len(cells) + row)) == BAD:
                    return fail(failure, NOT_AN_EXAMPLE, row, column, 0)
            else:
                values[i, row] = np.int64(value)
            present[i, row] = 1
    return 0


@kernel
def take_float_scalars(data: Any, cells: Any, columns: Any, values: Any, present: Any, failure: Any) -> Any:
    """The same for floats; `values` holds their bits."""
    base, out = address_of(data), address_of(values)
    for row in range(len(cells)):
        for i in range(len(columns)):
            column = columns[i]
            begin, end = base + cells[row, column, 0], base + cells[row, column, 1]
            present[i, row], values[i, row] = 0, 0
            if begin == base + MISSING:
                continue
            value, is_one = _one_float(begin, end)
            if not is_one:
                count = count_list(begin, end, FLOAT_KIND)[0]
                if count == BAD:
                    return fail(failure, NOT_AN_EXAMPLE, row, column, 0)
                if count > 1:
                    return fail(failure, NOT_ONE_VALUE, row, column, count)
                if count == 0:
                    continue
                _put_floats(begin, end, out + 4 * (i * len(cells) + row))
            else:
                values[i, row] = value
            present[i, row] = 1
    return 0


@kernel
def count(data: Any, cells: Any, column: Any, kind: Any, lengths: Any, sizes: Any, failure: Any) -> Any:
    """The number of values of each row of a column, -1 where the feature is missing; of bytes also how many."""
    base = address_of(data)
    for row in range(len(cells)):
        begin, end = cells[row, column, 0], cells[row, column, 1]
        lengths[row], sizes[row] = -1, 0
        if begin != MISSING:
            lengths[row], sizes[row] = count_list(base + begin, base + end, kind)
            if lengths[row] == BAD:
                return fail(failure, NOT_AN_EXAMPLE, row, column, 0)
    return 0


@kernel
def take_numbers(data: Any, cells: Any, column: Any, kind: Any, values: Any, failure: Any) -> Any:
    """Fills `values` with all values of a column of numbers, row after row."""
    base, out = address_of(data), address_of(values)
    for row in range(len(cells)):
        begin, end = cells[row, column, 0], cells[row, column, 1]
        if begin == MISSING:
            continue
        if kind == FLOAT_KIND:
            out = _put_floats(base + begin, base + end, out)
        else:
            out = _put_int64s(base + begin, base + end, out)
            if out == BAD:
                return fail(failure, NOT_AN_EXAMPLE, row, column, 0)
    return 0


@kernel
def take_bytes(data: Any, cells: Any, column: Any, ends: Any, values: Any) -> None:
    """Fills `values` with all bytes of a column, row after row, and `ends` with where each value ends."""
    base, start = address_of(data), address_of(values)
    out, index = start, 0
    for row in range(len(cells)):
        if cells[row, column, 0] == MISSING:
            continue
        at, end = base + cells[row, column, 0], base + cells[row, column, 1]
        while at < end:
            tag, at = varint(at, end)
            if tag == ONE:
                begin, at = sized(at, end)
                copy_bytes(out, begin, at - begin)
                out += at - begin
                ends[index] = out - start
                index += 1
            else:
                at = skip(at, end, tag)
