"""One array that is filled sample by sample.

Python's numbers are packed straight into the array. A NumPy array whose type always fits is copied in. Others wait in
their own type, and all of them together are checked and converted later: when the batch is taken, or when a sample
comes in another type.
"""

from contextlib import suppress
from typing import Any

import numpy as np

from penstock.store.conversion import Misfit, Values, fill, limits_of, misfit_reason, rounding_error
from penstock.store.packing import REFUSALS, Put, packed_doubles, packing
from penstock.store.schema import ArraySpec, DType

_FLOAT16 = np.dtype(np.float16)
_NUMBER_KINDS = "biuf"


class Misfitting(Exception):
    """A value that cannot be had: in which row of the batch, at which place of the row, and why."""

    def __init__(self, row: int, misfit: Misfit) -> None:
        super().__init__(misfit.reason)
        self.row = row
        self.misfit = misfit


class SampleColumn:
    """The rows of one array of a batch, put one after the other."""

    def __init__(self, spec: ArraySpec, batch_size: int) -> None:
        self.spec = spec
        self.values: Values = np.zeros(spec.shape(batch_size), spec.dtype)
        self.largest_error = 0.0
        """Of rounding to float16; other types are not watched."""
        self._row_shape = self.values.shape[1:]
        self._is_watched = spec.dtype == _FLOAT16
        self._rooms: dict[DType, Values] = {}
        """Where rows of each type are put: into the array where all of them fit, else into one of their own."""
        self._room = self.values
        """The one that rows are put into now. Where it is not the array, they wait there, from `_first_waiting` on."""
        self._first_waiting = 0
        self._pack = packing(self.values)

    def put(self, row: int, value: Any) -> None:
        """Take the value of a sample: a number, a list or an array."""
        if isinstance(value, np.ndarray):
            self._put_array(row, value)
        elif self._pack is None or not self._is_packed(row, value, self._pack):
            self._put_array(row, self._as_array(row, value))

    def put_block(self, first_row: int, block: Values) -> None:
        """Take the values of several samples."""
        if block.shape[1:] != self._row_shape:
            raise Misfitting(first_row, self._wrong_shape(block[0]))
        self.settle(first_row)
        self._fill(first_row, self.values[first_row : first_row + len(block)], block)

    def settle(self, end_row: int) -> None:
        """Convert rows that wait, up to one; a value that does not fit is an error, until it is forgotten."""
        rows = slice(self._first_waiting, end_row)
        if self._room is not self.values and rows.start < rows.stop:
            self._fill(rows.start, self.values[rows], self._room[rows])
        self.forget()

    def forget(self) -> None:
        """Let go of rows that wait."""
        self._room = self.values

    def _is_packed(self, row: int, value: Any, pack: Put) -> bool:
        """Whether there was a short way for it."""
        if self._room is not self.values:
            self.settle(row)
        try:
            pack(row, value)
        except REFUSALS:
            return False
        return True

    def _as_array(self, row: int, value: Any) -> Values:
        """What cannot be packed: too many or too few values, wrong ones, or numbers of another kind.

        Lists for float16 wait as float64, whatever is in them, so that the rounding error is known.
        """
        if self._is_watched:
            with suppress(*REFUSALS):
                return packed_doubles(value)
        try:
            found = np.asarray(value)
            # Beside text NumPy makes text of numbers too, which would then be blamed for it.
            return np.asarray(value, object) if found.dtype.kind in "SU" else found
        except ValueError:
            raise Misfitting(row, Misfit((), None, "has parts of different lengths")) from None

    def _put_array(self, row: int, value: Values) -> None:
        if value.shape != self._row_shape:
            raise Misfitting(row, self._wrong_shape(value))
        room = self._rooms.get(value.dtype)
        if room is None:
            room = self._rooms[value.dtype] = self._new_room(row, value)
        if room is not self._room:
            self.settle(row)
            self._room, self._first_waiting = room, row
        room[row] = value

    def _new_room(self, row: int, value: Values) -> Values:
        if value.dtype.kind not in _NUMBER_KINDS:
            raise Misfitting(row, self._culprit(value.reshape(-1).tolist()))
        if np.can_cast(value.dtype, self.spec.dtype, "safe"):
            return self.values
        return np.zeros(self.values.shape, value.dtype)

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
            if not isinstance(item, int | float | np.number):
                return Misfit(index, item, f"{item!r} is no number")
            if not least <= item <= most:
                return Misfit(index, item, misfit_reason(item, self.spec.dtype))
        return Misfit((), None, "has values that are no numbers")
