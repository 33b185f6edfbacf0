"""The bytes of arrays, without a copy where they lie one behind the other."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import MIB

CHUNK_BYTES = MIB
"""How much of an array is written at a time: it is still in the processor's cache after its checksum was taken."""

Values = NDArray[Any]


def checked_array(file: str, name: Any, values: Any) -> Values:
    """An array that can be stored: of numbers, dates or text of fixed length."""
    if not isinstance(name, str) or not name:
        raise DataError(f"{file}: an array is called {name!r}; names of arrays are text")
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"{file}: array '{name}' has rows of different lengths") from None
    if array.dtype.hasobject or array.dtype.names:
        raise DataError(
            f"{file}: array '{name}' has dtype {array.dtype}; give numbers "
            "(samples_to_arrays makes arrays of samples)"
        )
    return array


def chunks(array: Values) -> Iterator[memoryview]:
    """The bytes of an array in C order; straight from it if they lie so, else by copies of a few rows."""
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


def values_checksum(array: Values) -> int:
    """CRC-32 of the bytes of an array in C order."""
    crc = 0
    for chunk in chunks(array):
        crc = zlib.crc32(chunk, crc)
    return crc
