"""CRC-32 of arrays and files, and of what comes of joining them.

It is the checksum of zip archives, so that what a batch file says of its arrays is also what a merged `.npz` needs,
and the checksum of arrays behind each other follows from theirs without another look at the bytes.
"""

import functools
import operator
import zlib
from pathlib import Path

from penstock.runtime.durable import BLOCK_BYTES

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
"""The polynomial 1: bits stand in reverse, the highest is the power 0."""
_BYTE_SHIFT = 1 << 23
"""The polynomial x^8: what a zero byte multiplies a checksum by."""

Multiples = tuple[int, ...]
"""A polynomial times each of the 16 whose powers are below 4; products are worked out four bits at a time."""


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
def _shift(num_bytes: int) -> Multiples:
    """x^(8 * num_bytes): what that many zero bytes multiply a checksum by. Lengths come again and again."""
    if num_bytes < 0:
        raise ValueError(f"a stretch of {num_bytes} bytes has no checksum")
    power, factor = _ONE, _multiples(_BYTE_SHIFT)
    while num_bytes:
        if num_bytes & 1:
            power = _product(power, factor)
        factor = _multiples(_product(factor[8], factor))
        num_bytes >>= 1
    return _multiples(power)


def _product(one: int, multiples: Multiples) -> int:
    """Of two polynomials over bits, modulo that of CRC-32."""
    product = 0
    for _ in range(8):
        product = (product >> 4) ^ _CARRIED[product & 15] ^ multiples[one & 15]
        one >>= 4
    return product


def _multiples(polynomial: int) -> Multiples:
    powers = [polynomial]
    for _ in range(3):
        powers.append(_times_x(powers[-1]))
    return tuple(
        functools.reduce(operator.xor, (powers[power] for power in range(4) if number & (8 >> power)), 0)
        for number in range(16)
    )


def _times_x(polynomial: int) -> int:
    return (polynomial >> 1) ^ (_POLYNOMIAL if polynomial & 1 else 0)


def _carried(low_bits: int) -> int:
    """What comes of the four highest powers when a polynomial is multiplied by x^4."""
    for _ in range(4):
        low_bits = _times_x(low_bits)
    return low_bits


_CARRIED = tuple(_carried(low_bits) for low_bits in range(16))
