"""What the instructions of a pickle work on: its bytes, a stack with marks, and values that are kept for later."""

from typing import Any

import numpy as np

from penstock.store.plain_pickle.names import Named, Unbuilt
from penstock.store.plain_pickle.values import NotPlain

_LEAST_ARGUMENT_VALUES = 1 << 16
_LONG = (str, bytes, bytearray, list, tuple, dict, set, frozenset)


class Machine:
    """A pickle, and how far it has come."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0
        self.stack: list[Any] = []
        """What was pushed since the last mark."""
        self._below: list[list[Any]] = []
        """The stacks under each mark."""
        self._memo: dict[int, Any] = {}
        self._most_argument_values = _LEAST_ARGUMENT_VALUES + 4 * len(content)
        """That calls may have yet. In a real pickle each call has its own, that stand before it."""

    def take(self, num_bytes: int) -> bytes:
        """The next bytes, all of them."""
        start, self.place = self.place, self.place + num_bytes
        if self.place > len(self.content):
            raise IndexError
        return self.content[start : self.place]

    def skip(self, num_bytes: int) -> None:
        """Leave out what is of no use here."""
        self.place += num_bytes

    def take_number(self, num_bytes: int) -> int:
        """A number of so many bytes that is not negative; most have one."""
        if num_bytes > 1:
            return int.from_bytes(self.take(num_bytes), "little")
        self.place += 1
        return self.content[self.place - 1]

    def take_line(self) -> bytes:
        """The next bytes up to the end of a line, without it."""
        end = self.content.find(b"\n", self.place)
        line = self.take(end - self.place if end >= 0 else len(self.content))
        self.place += 1
        return line

    def push(self, value: Any) -> None:
        """Put a value on top."""
        self.stack.append(value)

    def mark(self) -> None:
        """Begin a stack of its own for the items of something."""
        self._below.append(self.stack)
        self.stack = []

    def pop_items(self) -> list[Any]:
        """What was pushed since the last mark, which is gone then."""
        items, self.stack = self.stack, self._below.pop()
        return items

    def pop_last(self, num_items: int) -> list[Any]:
        """The last items, in order."""
        items = self.stack[-num_items:]
        if len(items) < num_items:
            raise IndexError
        del self.stack[-num_items:]
        return items

    def memoize(self, place: int | None = None) -> None:
        """Keep what is on top for later."""
        if place is None:
            place = len(self._memo)
        value = self._memo[place] = self.stack[-1]
        if type(value) is Unbuilt:
            value.memo_place = place

    def push_known(self, place: int) -> None:
        """Push what was kept."""
        self.stack.append(self._memo[place])

    def call(self) -> None:
        """Push what a name makes of arguments."""
        function, arguments = self.pop_last(2)
        if not isinstance(function, Named):
            raise NotPlain("a call of what is no name")
        self.stack.append(function.call(*self._counted(arguments)))

    def build(self) -> None:
        """Put a value in the place of what was only named, wherever it is kept."""
        unbuilt, state = self.pop_last(2)
        if not isinstance(unbuilt, Unbuilt):
            raise NotPlain("attributes of what is no array")
        value = unbuilt.build(self._counted(state))
        self.stack.append(value)
        if unbuilt.memo_place is not None:
            self._memo[unbuilt.memo_place] = value

    def _counted(self, arguments: Any) -> tuple[Any, ...]:
        """Arguments, unless they are the same long ones again and again."""
        if type(arguments) is not tuple or any(isinstance(item, np.ndarray) for item in arguments):
            raise NotPlain("a call with other arguments than there are")
        lengths = [len(item) for item in arguments if isinstance(item, _LONG)]
        self._most_argument_values -= len(arguments) + sum(lengths)
        if self._most_argument_values < 0:
            raise NotPlain("the same values again and again")
        return arguments
