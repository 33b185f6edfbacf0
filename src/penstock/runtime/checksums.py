"""CRC-32 of files and arrays, the checksum that zip archives have too, and of what comes of joining them.

The checksum of joined bytes follows from those of the parts, so that a merge takes each checksum once.
"""

import functools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.sizes import MIB
from penstock.runtime.durable import BLOCK_BYTES

CHUNK_BYTES = MIB
"""Small enough that bytes are still in the processor's cache when they are used again after their checksum."""

_POLYNOMIAL = 0xEDB88320
# Bits stand in reverse, the highest is the power 0: the polynomials 1, and x^8, by which a zero byte multiplies.
_ONE, _BYTE_SHIFT = 1 << 31, 1 << 23


def joined_checksum(first: int, second: int, second_bytes: int) -> int:
    """The checksum of two stretches of bytes one after the other, from those of both."""
    return _product(first, _shift(second_bytes)) ^ second


def checksum_of_rest(whole: int, first: int, rest_bytes: int) -> int:
    """The checksum of what comes after a first stretch, from those of the whole and of the first."""
    return _product(first, _shift(rest_bytes)) ^ whole


@functools.lru_cache(maxsize=4096)
def _shift(num_bytes: int) -> int:
    """x^(8 * num_bytes): what that many zero bytes multiply a checksum by. Lengths come again and again."""
    power, factor = _ONE, _BYTE_SHIFT
    while num_bytes:
        if num_bytes & 1:
            power = _product(power, factor)
        factor = _product(factor, factor)
        num_bytes >>= 1
    return power


def _product(one: int, other: int) -> int:
    """Of two polynomials over bits, modulo that of CRC-32."""
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = (one << 1) & 0xFFFFFFFF
        other = (other >> 1) ^ (_POLYNOMIAL if other & 1 else 0)
    return product


def file_checksum(path: Path) -> int:
    crc = 0
    buffer = memoryview(bytearray(BLOCK_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            crc = zlib.crc32(buffer[:count], crc)
    return crc


def chunks(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array in C order: views where it is contiguous, else copies of a few rows."""
    if array.size == 0:
        return
    if array.flags.c_contiguous:
        whole = array.reshape(-1).view(np.uint8).data
        for start in range(0, len(whole), CHUNK_BYTES):
            yield whole[start : start + CHUNK_BYTES]
        return
    num_rows = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
    for first_row in range(0, len(array), num_rows):
        rows = np.ascontiguousarray(array[first_row : first_row + num_rows])
        yield rows.reshape(-1).view(np.uint8).data


def array_checksum(array: NDArray[Any], crc: int = 0) -> int:
    for chunk in chunks(array):
        crc = zlib.crc32(chunk, crc)
    return crc
