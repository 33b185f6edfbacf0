"""Numbers into arrays of another type, exactly or not at all.

Integers must come out as they went in; floats may be rounded but must not become infinite. Python's numbers are packed
straight into the bytes of an array: NumPy would first make an array of every list, which takes twice the time.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Pack = Callable[[int, Any], None]
"""Puts the value of a sample into a row of an array, or raises one of `REFUSALS` and leaves anything in the row."""

REFUSALS = (struct.error, OverflowError, TypeError, ValueError)
"""Raised for a value that does not fit, and for one that may fit but comes in another form."""

_BLOCK_VALUES = 1 << 18
_LISTS = (list, tuple)  # other iterables may give their keys or letters, or can be read only once
_CODES = dict(zip(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"], "bhiqBHIQfd", strict=True))
"""NumPy's types in the terms of `struct`; others, such as bool, have no code that refuses what does not fit."""


@dataclass(frozen=True)
class Misfit:
    """The first value that a type cannot hold: its index in the array, and why."""

    index: tuple[int, ...]
    value: Any
    reason: str


def fill(target: Values, source: Values) -> Misfit | None:
    """Copy values into an array of the same shape and maybe another type; returns the first that does not fit."""
    if np.can_cast(source.dtype, target.dtype, "safe"):
        target[...] = source
        return None
    if source.dtype.kind not in "biuf":
        kind = "text" if source.dtype.kind in "SU" else f"of type {source.dtype}"
        kind = "no number" if source.dtype.hasobject else kind
        return Misfit((0,) * source.ndim, None, f"is {kind}; {target.dtype} takes numbers only")
    with np.errstate(all="ignore"):
        target[...] = source
        if target.dtype.kind != "f":
            wrong = target != source
        else:
            wrong = np.isinf(target)
            if wrong.any():
                wrong &= np.isfinite(source)
    if not wrong.any():
        return None
    index = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    value = source[index].item()
    return Misfit(index, value, misfit_reason(value, target.dtype))


def misfit_reason(value: Any, dtype: np.dtype[Any]) -> str:
    low, high = limits_of(dtype)
    if dtype.kind == "f":
        return f"{value!r} does not fit {dtype} (at most {high:.6g})"
    if low <= value <= high:
        return f"{value!r} is no whole number; {dtype} takes only these"
    return f"{value!r} does not fit {dtype} ({low} to {high})"


def limits_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        largest = float(np.finfo(dtype).max)
        return -largest, largest
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def rounding_error(target: Values, source: Values) -> float:
    """The largest difference between finite values and what became of them, some at a time."""
    largest = 0.0
    flat_target, flat_source = target.reshape(-1), source.reshape(-1)
    for start in range(0, flat_source.size, _BLOCK_VALUES):
        exact = flat_source[start : start + _BLOCK_VALUES].astype(np.float64)
        with np.errstate(invalid="ignore"):
            errors = np.abs(flat_target[start : start + _BLOCK_VALUES] - exact)
        largest = max(largest, float(np.nanmax(errors, initial=0.0)))
    return largest


def packing(values: Values) -> Pack | None:
    """The fast way into an array of numbers, or of rows of numbers; None where its type has none."""
    dtype = values.dtype
    code = _CODES.get(dtype.str[1:]) if dtype.isnative else None
    if code is None:
        return None
    buffer = values.data
    if values.ndim == 1:
        if dtype.kind in "iu":
            return buffer.__setitem__
        number = struct.Struct(f"={code}")  # without "=", floats overflow unseen

        def pack_number(row: int, value: Any) -> None:
            number.pack_into(buffer, row * number.size, value)

        return pack_number
    width = values.shape[1]
    numbers = struct.Struct(f"={width}{code}")

    def pack_row(row: int, value: Any) -> None:
        if not isinstance(value, _LISTS):
            raise TypeError("is no list")
        numbers.pack_into(buffer, row * numbers.size, *value)

    if dtype != np.int8:
        return pack_row
    raw = values.reshape(-1).view(np.uint8).data

    def pack_mask(row: int, value: Any) -> None:
        # Lists of 0 and 1 are most of many samples: bytes() takes 0 to 127 in half the time.
        content = bytes(value) if isinstance(value, (*_LISTS, bytes)) else b""
        if len(content) != width or not content.isascii():
            raise ValueError("has other numbers, or another number of them")
        raw[row * width : (row + 1) * width] = content

    return pack_mask
