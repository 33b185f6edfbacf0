"""The header of a `.npy` array, as NumPy writes it."""

import functools
import io
import struct
import tokenize
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.config.sizes import KIB

MOST_HEADER_BYTES = 16 * KIB
"""More than NumPy allows a header to have."""

_DAMAGED = (ValueError, struct.error, TypeError, SyntaxError, tokenize.TokenError, RecursionError)
"""What NumPy raises of a header whose text is no longer a dict of Python."""
_LENGTHS = {(1, 0): struct.Struct("<H"), (2, 0): struct.Struct("<I")}
"""Of the text, in front of it."""
_LEAST_BYTES = 12
_READ_HEADER = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """What stands in front of the values."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_column_major: bool
    """NumPy's Fortran order, where that makes a difference."""


def read_npy_header(stream: IO[bytes], place: str) -> NpyHeader:
    """The header that a stream begins with; the values come next. `place` is what the array is called in messages."""
    try:
        version = npy_format.read_magic(stream)
        if version not in _READ_HEADER:
            raise DataError(
                f"{place}: is a NumPy array of named fields; write each field as an array of its own"
            )
        length = _LENGTHS[version].unpack(stream.read(_LENGTHS[version].size))[0]
        return _parsed(version, length, stream.read(length))
    except _DAMAGED as error:
        raise DataError(f"{place}: is not a NumPy array, or is cut short: {_first_line(error)}") from error


def npy_header_bytes(beginning: bytes) -> int:
    """How long the header is that begins so, with all that stands before its text; 0 where that cannot be told."""
    length = _LENGTHS.get((beginning[6], beginning[7])) if len(beginning) >= _LEAST_BYTES else None
    return 0 if length is None else 8 + length.size + int(length.unpack_from(beginning, 8)[0])


@functools.lru_cache(maxsize=256)
def _parsed(version: tuple[int, int], text_bytes: int, text: bytes) -> NpyHeader:
    """What a header says; files of the same making have the same headers, and NumPy takes long to read them."""
    stream = io.BytesIO(_LENGTHS[version].pack(text_bytes) + text)
    shape, is_column_major, dtype = _READ_HEADER[version](stream)
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return NpyHeader(dtype, shape, is_column_major and len(shape) > 1)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["no reason is known"])[0]
