"""One array that is filled sample by sample.

A list of numbers is packed straight into the array, which refuses what its type does not have. A NumPy array whose
type always fits is copied in. Others wait in their own type, and all of them together are checked and converted
later: when the batch is taken, or when a sample comes in another type.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.store.conversion import Misfit, fill, limits_of, misfit_reason, rounding_error
from penstock.store.schema import ArraySpec

_CODES = {
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
    "f2": "d",
    "f4": "f",
    "f8": "d",
}
"""What `struct` calls NumPy's types. Lists for float16 wait as float64, so that the rounding error is known; for
others, bool among them, `struct` has no type that refuses what does not fit."""
_FLOAT16 = np.dtype(np.float16)
_FLOAT64 = np.dtype(np.float64)
_NUMBER_KINDS = "biuf"

Values = NDArray[Any]
DType = np.dtype[Any]


def _packing(spec: ArraySpec) -> struct.Struct | None:
    code = _CODES.get(spec.dtype.str[1:])
    if code is None or not spec.dtype.isnative:
        return None
    # Without "=", floats overflow unseen.
    return struct.Struct(f"={1 if spec.width is None else spec.width}{code}")


class Misfitting(Exception):
    """A value that cannot be had: in which row of the batch, at which place of the row, and why."""

    def __init__(self, row: int, misfit: Misfit) -> None:
        super().__init__(misfit.reason)
        self.row = row
        self.misfit = misfit


class SampleColumn:
    """The rows of one array of a batch."""

    def __init__(self, spec: ArraySpec, batch_size: int) -> None:
        self.spec = spec
        self.values: Values = np.zeros(spec.shape(batch_size), spec.dtype)
        self.largest_error = 0.0
        """Of rounding to float16; other types are not watched."""
        self._row_shape = self.values.shape[1:]
        self._is_watched = spec.dtype == _FLOAT16
        self._fits_always: dict[DType, bool] = {}
        self._waiting: dict[DType, Values] = {}
        """Rows in other types, at the places that they will have; those of one type at a time."""
        self._waiting_dtype = spec.dtype
        self._first_waiting = self._end_waiting = 0
        self._packing = _packing(spec)
        self._bytes = self.values.reshape(-1).data if spec.dtype == np.int8 and spec.width else None

    def put(self, row: int, value: Any) -> None:
        """Take the value of a sample: a number, a list or an array."""
        if isinstance(value, np.ndarray):
            self._put_array(row, value)
        elif self._bytes is None or not self._put_small(row, value, self._bytes):
            self._put_list(row, value)

    def put_block(self, first_row: int, block: Values) -> None:
        """Take the values of several samples."""
        if block.shape[1:] != self._row_shape:
            raise Misfitting(first_row, self._wrong_shape(block[0]))
        self._fill(first_row, self._room(first_row)[first_row : first_row + len(block)], block)

    def settle(self, end_row: int) -> None:
        """Convert rows that wait, up to one; a value that does not fit is an error, until it is forgotten."""
        rows = slice(self._first_waiting, min(self._end_waiting, end_row))
        if rows.start < rows.stop:
            self._fill(rows.start, self.values[rows], self._waiting[self._waiting_dtype][rows])
        self.forget()

    def forget(self) -> None:
        """Let go of rows that wait."""
        self._first_waiting = self._end_waiting = 0

    def _put_list(self, row: int, value: Any) -> None:
        if self._packing is None:
            self._put_other(row, value)
            return
        room = self._waiting_room(row, _FLOAT64) if self._is_watched else self._room(row)
        items = (value,) if self.spec.width is None else value
        try:
            self._packing.pack_into(room.data, row * self._packing.size, *items)
        except (struct.error, OverflowError, TypeError):
            self._put_other(row, value)

    def _put_small(self, row: int, value: Any, room: memoryview) -> bool:
        """Masks as lists of 0 and 1 are most of many samples, and this takes them in half the time."""
        if not isinstance(value, list | tuple):
            return False
        try:
            content = bytes(value)
        except (TypeError, ValueError):
            return False
        width = self.spec.width
        if len(content) != width or not content.isascii():
            return False
        self._room(row)
        room[row * width : (row + 1) * width] = memoryview(content).cast("b")
        return True

    def _put_array(self, row: int, value: Values) -> None:
        if value.shape != self._row_shape:
            raise Misfitting(row, self._wrong_shape(value))
        dtype = value.dtype
        fits_always = self._fits_always.get(dtype)
        if fits_always is None:
            if dtype.kind not in _NUMBER_KINDS:
                raise Misfitting(row, self._culprit(value.reshape(-1).tolist()))
            fits_always = self._fits_always[dtype] = np.can_cast(dtype, self.spec.dtype, "safe")
        room = self._room(row) if fits_always else self._waiting_room(row, dtype)
        room[row] = value

    def _put_other(self, row: int, value: Any) -> None:
        """What cannot be packed: too many or too few values, wrong ones, or numbers of another kind."""
        try:
            array = np.asarray(value)
        except ValueError:
            raise Misfitting(row, Misfit((), None, "has parts of different lengths")) from None
        self._put_array(row, array)

    def _room(self, row: int) -> Values:
        if self._end_waiting:
            self.settle(row)
        return self.values

    def _waiting_room(self, row: int, dtype: DType) -> Values:
        if self._end_waiting and self._waiting_dtype != dtype:
            self.settle(row)
        if dtype not in self._waiting:
            self._waiting[dtype] = np.zeros(self.values.shape, dtype)
        if not self._end_waiting:
            self._first_waiting, self._waiting_dtype = row, dtype
        self._end_waiting = row + 1
        return self._waiting[dtype]

    def _fill(self, first_row: int, target: Values, source: Values) -> None:
        misfit = fill(target, source)
        if misfit is not None:
            raise Misfitting(
                first_row + misfit.index[0], Misfit(misfit.index[1:], misfit.value, misfit.reason)
            )
        if self._is_watched:
            self.largest_error = max(self.largest_error, rounding_error(target, source))

    def _wrong_shape(self, value: Values) -> Misfit:
        if self.spec.width is None:
            return Misfit((), None, f"has shape {value.shape} but should be one number")
        if value.ndim != 1:
            return Misfit(
                (), None, f"has shape {value.shape} but should be {self.spec.width} numbers in a row"
            )
        return Misfit((), None, f"has {len(value)} values, not {self.spec.width}")

    def _culprit(self, items: list[Any]) -> Misfit:
        """The first value that is no number, or one beyond all types; only a row that has one gets here."""
        least, most = limits_of(self.spec.dtype)
        for place, item in enumerate(items):
            index = () if self.spec.width is None else (place,)
            if not isinstance(item, int | float):
                return Misfit(index, item, f"{item!r} is no number")
            if not least <= item <= most:
                return Misfit(index, item, misfit_reason(item, self.spec.dtype))
        return Misfit((), None, "has values that are no numbers")
