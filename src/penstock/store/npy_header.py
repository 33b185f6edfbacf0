"""The header of a `.npy` array, as NumPy writes it."""

import tokenize
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.config.sizes import KIB

MOST_HEADER_BYTES = 16 * KIB
"""More than NumPy allows a header to have."""

_DAMAGED = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError)
"""What NumPy raises of a header whose text is no longer a dict of Python."""
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
        shape, is_column_major, dtype = _READ_HEADER[version](stream)
    except _DAMAGED as error:
        raise DataError(f"{place}: is not a NumPy array, or is cut short: {_first_line(error)}") from error
    return NpyHeader(dtype, shape, is_column_major and len(shape) > 1)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["no reason is known"])[0]
