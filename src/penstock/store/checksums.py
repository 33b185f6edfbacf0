"""CRC-32 of arrays and files, and of what comes of joining them.

It is the checksum of zip archives, so that what a batch file says of its arrays is also what a merged `.npz` needs,
and the checksum of arrays behind each other follows from theirs without another look at the bytes.
"""

import functools
import zlib
from pathlib import Path

from penstock.runtime.durable import BLOCK_BYTES

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
"""The polynomial 1: bits stand in reverse, the highest is the power 0."""
_BYTE_SHIFT = 1 << 23
"""The polynomial x^8: what a zero byte multiplies a checksum by."""


def joined_checksum(first: int, second: int, second_bytes: int) -> int:
    """The checksum of two stretches of bytes behind each other, from those of both."""
    return _product(first, _shift(second_bytes)) ^ second


def checksum_of_rest(whole: int, first: int, rest_bytes: int) -> int:
    """The checksum of what comes after a first stretch, from those of the whole and of the first."""
    return _product(first, _shift(rest_bytes)) ^ whole


def file_checksum(path: Path) -> int:
    """The checksum of a file, read block by block."""
    crc = 0
    buffer = memoryview(bytearray(BLOCK_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            crc = zlib.crc32(buffer[:count], crc)
    return crc


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
