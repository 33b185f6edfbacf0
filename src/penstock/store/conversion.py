"""Numbers from one type to another, exactly or not at all.

Integers must come out as they went in; floats may be rounded but must not become infinite. Arrays are looked at as a
whole: one wrong value is found without a step of Python for each right one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penstock.config.errors import DataError

_BLOCK_VALUES = 1 << 18
"""How many values are looked at at a time: the memory it takes does not grow with the array."""

Values = NDArray[Any]


@dataclass(frozen=True)
class Misfit:
    """The first value that a type does not have: its place in the array, and why."""

    index: tuple[int, ...]
    value: Any
    reason: str


def fill(target: Values, source: Values) -> Misfit | None:
    """Put values into an array of the same shape but maybe another type; gives the first that does not fit."""
    if np.can_cast(source.dtype, target.dtype, "safe"):
        target[...] = source
        return None
    if not _are_numbers(source.dtype):
        return Misfit(
            (0,) * source.ndim, None, f"is {_kind(source.dtype)}; {target.dtype} takes numbers only"
        )
    with np.errstate(all="ignore"):
        target[...] = source
        wrong = _overflown(target, source) if target.dtype.kind == "f" else target != source
    if not wrong.any():
        return None
    index = tuple(int(place) for place in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    value = source[index].item()
    return Misfit(index, value, misfit_reason(value, target.dtype))


def misfit_reason(value: Any, dtype: np.dtype[Any]) -> str:
    """Why a number cannot be had in a type, with the range of that type."""
    least, most = limits_of(dtype)
    if dtype.kind == "f":
        return f"{value!r} does not fit {dtype} (at most {most:.6g})"
    if least <= value <= most:
        return f"{value!r} is no whole number; {dtype} takes only these"
    return f"{value!r} does not fit {dtype} ({least} to {most})"


def limits_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the largest finite number of a type, as Python's."""
    if dtype.kind == "f":
        largest = float(np.finfo(dtype).max)
        return -largest, largest
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def rounding_error(target: Values, source: Values) -> float:
    """The largest difference between finite values and what became of them."""
    largest = 0.0
    flat_target, flat_source = target.reshape(-1), source.reshape(-1)
    for start in range(0, flat_source.size, _BLOCK_VALUES):
        exact = flat_source[start : start + _BLOCK_VALUES].astype(np.float64)
        with np.errstate(invalid="ignore"):
            errors = np.abs(flat_target[start : start + _BLOCK_VALUES] - exact)
        largest = max(largest, float(np.nanmax(errors, initial=0.0)))
    return largest


def narrowed(
    array: Values, dtype: DTypeLike, *, name: str = "array", file: str | None = None
) -> tuple[Values, float]:
    """An array in a smaller type, and the largest rounding error; a value beyond the type's range is an error."""
    target = np.empty(array.shape, dtype)
    misfit = fill(target, array)
    if misfit is not None:
        place = "" if file is None else f"{file}: "
        row = f"row {misfit.index[0]}: " if misfit.index else ""
        raise DataError(f"{place}array '{name}': {row}{misfit.reason}; keep {array.dtype} for it")
    return target, rounding_error(target, array)


def _overflown(target: Values, source: Values) -> NDArray[np.bool_]:
    became_infinite: NDArray[np.bool_] = np.isinf(target)
    return became_infinite & np.isfinite(source) if became_infinite.any() else became_infinite


def _are_numbers(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biuf"


def _kind(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "SU":
        return "text"
    return "no number" if dtype.hasobject else f"of type {dtype}"
