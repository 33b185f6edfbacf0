"""Just enough of the flatbuffers encoding to read the metadata of Arrow files: tables, integers, vectors."""

import struct
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_OFFSET = struct.Struct("<I")
_SIGNED_OFFSET = struct.Struct("<i")
_SLOT = struct.Struct("<H")
_FIRST_SLOT = 4
"""In a table of slots: behind the sizes of that table and of the object."""


class FlatTable:
    """One table: its fields are known by their numbers, and absent ones have their default."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._slots = position - _SIGNED_OFFSET.unpack_from(data, position)[0]
        if not 0 <= self._slots < len(data):
            raise ValueError("a table of metadata points outside of it")

    @classmethod
    def root(cls, data: bytes) -> Self:
        """The table that the data begins with."""
        return cls(data, _OFFSET.unpack_from(data)[0])

    def integer(self, field: int, form: str) -> int:
        """An integer, in the form that `struct` calls it; 0 where it is absent."""
        at = self._field(field)
        return 0 if at is None else int(struct.unpack_from(f"<{form}", self._data, at)[0])

    def table(self, field: int) -> Self | None:
        """A table."""
        at = self._field(field)
        return None if at is None else type(self)(self._data, self._target(at))

    def vector(self, field: int, dtype: Any) -> NDArray[Any]:
        """Numbers or structs that lie one behind the other."""
        at = self._field(field)
        if at is None:
            return np.empty(0, dtype)
        start = self._target(at)
        length = _OFFSET.unpack_from(self._data, start)[0]
        return np.frombuffer(self._data, dtype, length, start + _OFFSET.size)

    def tables(self, field: int) -> list[Self]:
        """The tables that a vector points to."""
        at = self._field(field)
        if at is None:
            return []
        start = self._target(at) + _OFFSET.size
        offsets = self.vector(field, "<u4").tolist()
        return [
            type(self)(self._data, start + _OFFSET.size * index + offset)
            for index, offset in enumerate(offsets)
        ]

    def _field(self, field: int) -> int | None:
        slots_bytes = _SLOT.unpack_from(self._data, self._slots)[0]
        slot = _FIRST_SLOT + _SLOT.size * field
        offset = _SLOT.unpack_from(self._data, self._slots + slot)[0] if slot < slots_bytes else 0
        return self._position + offset if offset else None

    def _target(self, at: int) -> int:
        return at + int(_OFFSET.unpack_from(self._data, at)[0])
