"""The headers of Parquet pages, as far as memory is concerned: kind, sizes, and where the next page begins.

Arrow offers no access to them. They are Thrift structures in the compact protocol, of which only a few fields
matter here; the rest is stepped over to find the end of the header.
"""

from dataclasses import dataclass

import pyarrow as pa

from penstock.config.sizes import KIB
from penstock.readers.storage import read_at

_FIRST_READ_BYTES = 128
_MOST_HEADER_BYTES = 256 * KIB
"""A header may hold statistics, with texts in them."""
_BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 3, (4, 5, 6), 7, 8, (9, 10), 12
_KIND, _SIZE, _COMPRESSED_SIZE, _NUM_DICTIONARY_VALUES = (1,), (2,), (3,), (7, 1)
"""Fields by their numbers, and by those of the structure they are in."""
DICTIONARY_PAGE = 2


@dataclass(frozen=True, slots=True)
class PageHeader:
    """One page of a column chunk."""

    kind: int
    size_bytes: int
    """Decompressed."""
    end: int
    """Where the next page begins in the file."""
    num_dictionary_values: int = 0


def read_page_header(source: pa.NativeFile, offset: int) -> PageHeader | None:
    """The header at an offset of an open file; None where there is none that can be understood."""
    for num_bytes in (_FIRST_READ_BYTES, _MOST_HEADER_BYTES):
        data = read_at(source, num_bytes, offset)
        try:
            integers, header_end = _integers_of_struct(data)
        except IndexError:
            continue
        if _KIND in integers and _SIZE in integers and _COMPRESSED_SIZE in integers:
            end = offset + header_end + integers[_COMPRESSED_SIZE]
            return PageHeader(integers[_KIND], integers[_SIZE], end, integers.get(_NUM_DICTIONARY_VALUES, 0))
        return None
    return None


def _integers_of_struct(data: bytes) -> tuple[dict[tuple[int, ...], int], int]:
    """The integer fields of the structure at the start, those of inner ones too, and where it ends."""
    integers: dict[tuple[int, ...], int] = {}
    position = field = 0
    while data[position]:
        kind, step = data[position] & 0x0F, data[position] >> 4
        position += 1
        if not step:
            number, position = _varint(data, position)
            field = number >> 1
        field += step
        if kind in _INTEGERS:
            value, position = _varint(data, position)
            integers[field,] = value >> 1
        elif kind == _STRUCT:
            inner, inner_bytes = _integers_of_struct(data[position:])
            integers |= {(field, *path): value for path, value in inner.items()}
            position += inner_bytes
        else:
            position = _after(data, position, kind)
    return integers, position + 1


def _after(data: bytes, position: int, kind: int) -> int:
    """Where a value of a kind ends."""
    if kind == _BYTE:
        return position + 1
    if kind in _INTEGERS:
        return _varint(data, position)[1]
    if kind == _DOUBLE:
        return position + 8
    if kind == _BINARY:
        length, position = _varint(data, position)
        return position + length
    if kind in _LISTS:
        length, item_kind = data[position] >> 4, data[position] & 0x0F
        position += 1
        if length == 15:
            length, position = _varint(data, position)
        for _ in range(length):
            position = _after(data, position, item_kind)
        return position
    if kind == _STRUCT:
        return position + _integers_of_struct(data[position:])[1]
    return position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while data[position] & 0x80:
        value |= (data[position] & 0x7F) << shift
        position, shift = position + 1, shift + 7
    return value | data[position] << shift, position + 1
