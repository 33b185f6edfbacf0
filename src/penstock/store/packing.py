"""Python's numbers straight into the bytes of an array: exactly, or floats rounded, or not at all.

NumPy would make an array of every list first, and a copy of it; each way here takes half the time of that or less.
"""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.store.conversion import Values

Put = Callable[[int, Any], None]
"""Puts the value of a sample into a row of an array, or raises one of `REFUSALS` and leaves anything in the row."""

REFUSALS = (struct.error, OverflowError, TypeError, ValueError)
"""What is raised of a value that does not fit, and of one that may fit but comes in another form."""

_LISTS = (list, tuple)
"""What else gives one value after the other may give its keys or letters, or do so only once."""
_SMALL_LISTS = (list, tuple, bytes)
"""Bytes are a mask, but no features."""

_CODES = {
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
    "f4": "f",
    "f8": "d",
}
"""What `struct` calls NumPy's types; for others, bool among them, it has no type that refuses what does not fit."""


def packing(values: Values) -> Put | None:
    """The way into an array of numbers, or of rows of numbers; None where its type has none."""
    dtype = values.dtype
    code = _CODES.get(dtype.str[1:]) if dtype.isnative else None
    if code is None:
        return None
    if values.ndim == 1:
        return values.data.__setitem__ if dtype.kind in "iu" else _floats(values, code)
    return _small_rows(values) if dtype == np.int8 else _rows(values, code)


def packed_doubles(value: Any) -> NDArray[np.float64]:
    """A number or a list of numbers as an array; one of `REFUSALS` for anything else."""
    if not isinstance(value, _LISTS):
        return np.frombuffer(struct.pack("=d", value)).reshape(())
    return np.frombuffer(struct.pack(f"={len(value)}d", *value))


def _floats(values: Values, code: str) -> Put:
    number, room = _checked_struct(code), values.data

    def put(row: int, value: Any) -> None:
        number.pack_into(room, row * number.size, value)

    return put


def _rows(values: Values, code: str) -> Put:
    numbers, room = _checked_struct(f"{values.shape[1]}{code}"), values.data

    def put(row: int, value: Any) -> None:
        if not isinstance(value, _LISTS):
            raise TypeError("is no list")
        numbers.pack_into(room, row * numbers.size, *value)

    return put


def _small_rows(values: Values) -> Put:
    """Masks as lists of 0 and 1 are most of many samples: bytes take those from 0 to 127 in half the time."""
    width, room = values.shape[1], values.reshape(-1).view(np.uint8).data

    def put(row: int, value: Any) -> None:
        if not isinstance(value, _SMALL_LISTS):
            raise TypeError("is no list")
        content = bytes(value)
        if len(content) != width or not content.isascii():
            raise ValueError("has other numbers, or another number of them")
        room[row * width : (row + 1) * width] = content

    return put


def _checked_struct(form: str) -> struct.Struct:
    # Without "=", floats overflow unseen.
    return struct.Struct(f"={form}")
