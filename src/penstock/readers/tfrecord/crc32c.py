"""The masked crc32c of TFRecord files, compiled: by the processor's instruction, or else by tables.

The instruction takes a fifth of the time (8.5 against 1.5 GiB/s).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.readers.tfrecord.machine import HAS_CRC32C, crc32c_of_word, load_8, load_64
from penstock.runtime.kernels import kernel

_POLYNOMIAL = np.uint32(0x82F63B78)
_MASK_DELTA = np.uint32(0xA282EAD8)
_ALL_BITS = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(0xFF)


def _tables() -> NDArray[np.uint32]:
    """Table k: what a byte adds to the checksum when k more bytes follow it."""
    state = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        state = (state >> np.uint32(1)) ^ np.where(state & 1, _POLYNOMIAL, np.uint32(0))
    tables = [state]
    for _ in range(7):
        tables.append((tables[-1] >> np.uint32(8)) ^ state[tables[-1] & 0xFF])
    return np.stack(tables)


_TABLES = _tables()


@kernel
def crc32c_of_word_by_tables(state: Any, word: Any) -> Any:
    """The state after eight more bytes."""
    word ^= state
    low = _TABLES[7, word & _BYTE] ^ _TABLES[6, (word >> np.uint64(8)) & _BYTE]
    low ^= _TABLES[5, (word >> np.uint64(16)) & _BYTE] ^ _TABLES[4, (word >> np.uint64(24)) & _BYTE]
    high = _TABLES[3, (word >> np.uint64(32)) & _BYTE] ^ _TABLES[2, (word >> np.uint64(40)) & _BYTE]
    high ^= _TABLES[1, (word >> np.uint64(48)) & _BYTE] ^ _TABLES[0, word >> np.uint64(56)]
    return np.uint64(low ^ high)


_of_word = crc32c_of_word if HAS_CRC32C else crc32c_of_word_by_tables


@kernel
def crc32c(begin: Any, end: Any) -> Any:
    """The crc32c of the bytes between two addresses."""
    state = _ALL_BITS
    at = begin
    while at + 8 <= end:
        state = _of_word(state, load_64(at))
        at += 8
    while at < end:
        state = (state >> np.uint64(8)) ^ np.uint64(_TABLES[0, (state ^ np.uint64(load_8(at))) & _BYTE])
        at += 1
    return np.uint32(state ^ _ALL_BITS)


@kernel
def masked_crc32c(begin: Any, end: Any) -> Any:
    """As it stands in the files: rotated and moved, so that a checksum of data with checksums is worth something."""
    crc = crc32c(begin, end)
    return np.uint32(((crc >> np.uint32(15)) | (crc << np.uint32(17))) + _MASK_DELTA)
