"""Compiled loops from columns to the bytes of records.

A column is a row of numbers: its kind, and the addresses of its parts (the names below). `measure` says how many
bytes each list and each record takes, so that `encode` can write every size before what it is the size of.
"""

from typing import Any

import numpy as np

from penstock.readers.tfrecord.crc32c import masked_crc32c
from penstock.readers.tfrecord.machine import (
    address_of,
    copy_bytes,
    load_8,
    load_32,
    load_64,
    store_8,
    store_32,
    store_64,
)
from penstock.readers.tfrecord.wire import BYTES_KIND, FLOAT_KIND, FOOTER_BYTES, HEADER_BYTES
from penstock.runtime.kernels import kernel

KIND, KEY, KEY_BYTES, PRESENT, ROW_OFFSETS, VALUES, VALUE_OFFSETS = range(7)
"""PRESENT: a byte for each row, 0: every row has the feature. ROW_OFFSETS: int32, which values a row has, 0: row i
has value i. VALUE_OFFSETS: int32, where each text lies in VALUES."""
NUM_PARTS = 7

_ABSENT = -1  # the size of a list that a record does not have
_ONE, _TWO, _TAG_BYTES = 0x0A, 0x12, 1  # tags of the fields 1 and 2; that of a kind is 8 * kind + 2


@kernel
def _varint_bytes(value: Any) -> Any:
    size = 1
    while value >= np.uint64(128):
        value >>= np.uint64(7)
        size += 1
    return size


@kernel
def _sized_bytes(size: Any) -> Any:
    """What a field of so many bytes takes with its tag and its size."""
    return _TAG_BYTES + _varint_bytes(np.uint64(size)) + size


@kernel
def _put_varint(at: Any, value: Any) -> Any:
    while value >= np.uint64(128):
        store_8(at, np.uint8(value & np.uint64(127)) | np.uint8(128))
        value >>= np.uint64(7)
        at += 1
    store_8(at, np.uint8(value))
    return at + 1


@kernel
def _put_tag(at: Any, tag: Any, size: Any) -> Any:
    store_8(at, np.uint8(tag))
    return _put_varint(at + 1, np.uint64(size))


@kernel
def _int32_at(address: Any, index: Any) -> Any:
    return np.int64(np.int32(load_32(address + 4 * index)))


@kernel
def _extent(row_offsets: Any, row: Any) -> Any:
    """The first value of a row, and the one after its last."""
    if row_offsets == 0:
        return row, row + 1
    return _int32_at(row_offsets, row), _int32_at(row_offsets, row + 1)


@kernel
def _packed_bytes(kind: Any, values: Any, first: Any, end: Any) -> Any:
    """What the numbers of a row take, one after another."""
    if kind == FLOAT_KIND:
        return 4 * (end - first)
    size = 0
    for i in range(first, end):
        size += _varint_bytes(load_64(values + 8 * i))
    return size


@kernel
def _list_bytes(kind: Any, values: Any, value_offsets: Any, first: Any, end: Any) -> Any:
    if kind != BYTES_KIND:
        return _sized_bytes(_packed_bytes(kind, values, first, end)) if first < end else 0
    size = 0
    for i in range(first, end):
        size += _sized_bytes(_int32_at(value_offsets, i + 1) - _int32_at(value_offsets, i))
    return size


@kernel
def _entry_bytes(key_bytes: Any, list_bytes: Any) -> Any:
    return _sized_bytes(key_bytes) + _sized_bytes(_sized_bytes(list_bytes))


@kernel
def measure(columns: Any, list_bytes: Any, features_bytes: Any) -> Any:
    """Fills the size of each list (-1: absent) and of each row's Features; gives the bytes of all records."""
    total = 0
    for row in range(len(features_bytes)):
        features_bytes[row] = 0
        for column in range(len(columns)):
            present = columns[column, PRESENT]
            if present != 0 and load_8(present + row) == 0:
                list_bytes[row, column] = _ABSENT
                continue
            first, end = _extent(columns[column, ROW_OFFSETS], row)
            size = _list_bytes(
                columns[column, KIND], columns[column, VALUES], columns[column, VALUE_OFFSETS], first, end
            )
            list_bytes[row, column] = size
            features_bytes[row] += _sized_bytes(_entry_bytes(columns[column, KEY_BYTES], size))
        total += HEADER_BYTES + _sized_bytes(features_bytes[row]) + FOOTER_BYTES
    return total


@kernel
def _put_list(at: Any, kind: Any, values: Any, value_offsets: Any, first: Any, end: Any) -> Any:
    """Writes the values of a row, which has some."""
    if kind == BYTES_KIND:
        for i in range(first, end):
            begin = _int32_at(value_offsets, i)
            size = _int32_at(value_offsets, i + 1) - begin
            at = _put_tag(at, _ONE, size)
            copy_bytes(at, values + begin, size)
            at += size
        return at
    at = _put_tag(at, _ONE, _packed_bytes(kind, values, first, end))
    if kind == FLOAT_KIND:
        copy_bytes(at, values + 4 * first, 4 * (end - first))
        return at + 4 * (end - first)
    for i in range(first, end):
        at = _put_varint(at, load_64(values + 8 * i))
    return at


@kernel
def encode(columns: Any, list_bytes: Any, features_bytes: Any, out: Any) -> Any:
    """Writes the records that were measured; gives the number of bytes."""
    start = at = address_of(out)
    for row in range(len(features_bytes)):
        record = at
        at = _put_tag(record + HEADER_BYTES, _ONE, features_bytes[row])
        for column in range(len(columns)):
            size = list_bytes[row, column]
            if size == _ABSENT:
                continue
            kind, key_bytes = columns[column, KIND], columns[column, KEY_BYTES]
            at = _put_tag(at, _ONE, _entry_bytes(key_bytes, size))
            at = _put_tag(at, _ONE, key_bytes)
            copy_bytes(at, columns[column, KEY], key_bytes)
            at = _put_tag(at + key_bytes, _TWO, _sized_bytes(size))
            at = _put_tag(at, 8 * kind + 2, size)
            if size > 0:
                first, end = _extent(columns[column, ROW_OFFSETS], row)
                at = _put_list(at, kind, columns[column, VALUES], columns[column, VALUE_OFFSETS], first, end)
        store_64(record, np.uint64(at - record - HEADER_BYTES))
        store_32(record + 8, masked_crc32c(record, record + 8))
        store_32(at, masked_crc32c(record + HEADER_BYTES, at))
        at += FOOTER_BYTES
    return at - start
