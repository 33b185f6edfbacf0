"""Arrays that are used again as soon as nobody has them any more.

Memory that was just given back to the system must be cleared page by page when it is asked for again: for arrays of a
few megabytes, made hundreds of times a second, that takes as long as filling them.
"""

import sys
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_OWN_REFERENCES = 3
"""What holds an array that nobody uses: the rooms, the loop, and the question."""


class Rooms:
    """Gives out arrays whose values are whatever was there before, and remembers the last few.

    An array is free when nothing refers to it: no view, no tensor made from it.
    """

    def __init__(self, most: int = 4) -> None:
        self._rooms: deque[NDArray[Any]] = deque(maxlen=most)

    def __reduce__(self) -> tuple[type["Rooms"], tuple[int | None]]:
        """Another process begins with none."""
        return Rooms, (self._rooms.maxlen,)

    def take(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """An array that nobody else has."""
        for room in self._rooms:
            if room.shape == shape and room.dtype == kind and sys.getrefcount(room) == _OWN_REFERENCES:
                return room
        room = np.empty(shape, kind)
        self._rooms.append(room)
        return room
