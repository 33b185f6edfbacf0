"""The instructions of pickles of plain data.

Nearly all of a file is numbers, one after the other. Their instructions can do nothing but push them, so that Python's
own unpickler may have such a stretch, as a list of its own.
"""

import pickle
import re
from collections.abc import Callable
from typing import Any

from penstock.store.plain_pickle.machine import Machine
from penstock.store.plain_pickle.names import named
from penstock.store.plain_pickle.values import NotPlain, check_keys

_NUMBERS = re.compile(rb"(?:G.{8}|K.|M..|J.{4}|[N\x88\x89]|[FIL][^\n]*\n){1,4096}", re.DOTALL)
_APPENDED_LINES = re.compile(rb"(?:[FIL][^\n]*\na){1,4096}")
"""As protocol 0 has lists of numbers."""
_MOST_INTEGER_BYTES = 128


def run(content: bytes) -> Any:
    """The value that a pickle comes to."""
    machine = Machine(content)
    while (opcode := content[machine.place]) != _STOP:
        if opcode not in _INSTRUCTIONS:
            raise NotPlain(
                _REFUSED.get(opcode, f"instruction 0x{opcode:02x}, which plain data has no use for")
            )
        machine.place += 1
        _INSTRUCTIONS[opcode](machine)
    return machine.stack.pop()


def _push_numbers(machine: Machine) -> None:
    found = _NUMBERS.match(machine.content, machine.place - 1)
    if found is None:
        raise IndexError
    machine.stack += pickle.loads(b"(%bl." % found[0])  # noqa: S301 - numbers alone
    machine.place = found.end()


def _append_lines(machine: Machine) -> None:
    found = _APPENDED_LINES.match(machine.content, machine.place - 1)
    if found is None:
        _push_numbers(machine)
    else:
        _target(machine, list).extend(pickle.loads(b"]%b." % found[0]))  # noqa: S301 - numbers alone
        machine.place = found.end()


def _target(machine: Machine, kind: type) -> Any:
    """The container on top, that items are put into."""
    container = machine.stack[-1]
    if type(container) is not kind:
        raise NotPlain(f"items in a {type(container).__name__}, as if it were a {kind.__name__}")
    return container


def _append(machine: Machine) -> None:
    item = machine.stack.pop()
    _target(machine, list).append(item)


def _append_items(machine: Machine) -> None:
    items = machine.pop_items()
    _target(machine, list).extend(items)


def _set_item(machine: Machine) -> None:
    _update(machine, machine.pop_last(2))


def _update(machine: Machine, items: list[Any]) -> None:
    container = _target(machine, dict)
    container.update(_dict_of(items, len(container)))


def _dict_of(items: list[Any], num_known: int = 0) -> dict[Any, Any]:
    keys = items[::2]
    check_keys(keys, num_known)
    return dict(zip(keys, items[1::2], strict=True))


def _add_items(machine: Machine) -> None:
    items, container = machine.pop_items(), _target(machine, set)
    check_keys(items, len(container))
    container.update(items)


def _frozenset_of(items: list[Any]) -> frozenset[Any]:
    check_keys(items)
    return frozenset(items)


def _global(machine: Machine) -> None:
    module, name = machine.take_line().decode(), machine.take_line().decode()
    machine.push(named(module, name))


def _global_of_stack(machine: Machine) -> None:
    module, name = machine.pop_last(2)
    machine.push(named(module, name))


def _text_line(machine: Machine) -> None:
    machine.push(machine.take_line().decode("raw-unicode-escape"))


def _old_text_line(machine: Machine) -> None:
    """In quotes and with escapes, as Python 2 wrote it."""
    machine.push(pickle.loads(b"S%b\n." % machine.take_line()))  # noqa: S301 - text alone


def _push(make: Callable[[], Any]) -> Callable[[Machine], None]:
    return lambda machine: machine.push(make())


def _of_bytes(length_bytes: int, make: Callable[[bytes], Any]) -> Callable[[Machine], None]:
    """Push what is made of bytes that come after their number."""
    return lambda machine: machine.push(make(machine.take(machine.take_number(length_bytes))))


def _of_items(make: Callable[[list[Any]], Any]) -> Callable[[Machine], None]:
    return lambda machine: machine.push(make(machine.pop_items()))


def _of_last(num_items: int) -> Callable[[Machine], None]:
    return lambda machine: machine.push(tuple(machine.pop_last(num_items)))


def _utf8(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


def _ascii(content: bytes) -> str:
    return content.decode("ascii")


def _integer(content: bytes) -> int:
    if len(content) > _MOST_INTEGER_BYTES:
        raise NotPlain(f"a number of {len(content)} bytes")
    return int.from_bytes(content, "little", signed=True)


_STOP = ord(".")
_INSTRUCTIONS: dict[int, Callable[[Machine], None]] = {
    0x80: lambda machine: machine.skip(1),  # the protocol
    0x95: lambda machine: machine.skip(8),  # the length of a frame
    **dict.fromkeys(b"GKMJN\x88\x89", _push_numbers),
    **dict.fromkeys(b"FIL", _append_lines),
    ord("("): Machine.mark,
    ord("]"): _push(list),
    ord("}"): _push(dict),
    ord(")"): _push(tuple),
    0x8F: _push(set),
    ord("l"): _of_items(list),
    ord("t"): _of_items(tuple),
    ord("d"): _of_items(_dict_of),
    0x91: _of_items(_frozenset_of),
    0x85: _of_last(1),
    0x86: _of_last(2),
    0x87: _of_last(3),
    ord("a"): _append,
    ord("e"): _append_items,
    ord("s"): _set_item,
    ord("u"): lambda machine: _update(machine, machine.pop_items()),
    0x90: _add_items,
    ord("X"): _of_bytes(4, _utf8),
    0x8C: _of_bytes(1, _utf8),
    0x8D: _of_bytes(8, _utf8),
    ord("T"): _of_bytes(4, _ascii),
    ord("U"): _of_bytes(1, _ascii),
    ord("V"): _text_line,
    ord("S"): _old_text_line,
    ord("B"): _of_bytes(4, bytes),
    ord("C"): _of_bytes(1, bytes),
    0x8E: _of_bytes(8, bytes),
    0x96: _of_bytes(8, bytearray),
    0x8A: _of_bytes(1, _integer),
    0x8B: _of_bytes(4, _integer),
    ord("p"): lambda machine: machine.memoize(int(machine.take_line())),
    ord("q"): lambda machine: machine.memoize(machine.take_number(1)),
    ord("r"): lambda machine: machine.memoize(machine.take_number(4)),
    0x94: Machine.memoize,
    ord("g"): lambda machine: machine.push_known(int(machine.take_line())),
    ord("h"): lambda machine: machine.push_known(machine.take_number(1)),
    ord("j"): lambda machine: machine.push_known(machine.take_number(4)),
    ord("c"): _global,
    0x93: _global_of_stack,
    ord("R"): Machine.call,
    ord("b"): Machine.build,
}
_REFUSED = {
    **dict.fromkeys(b"io\x81\x92", "an object of a class"),
    **dict.fromkeys(b"PQ", "an object of another file"),
    **dict.fromkeys(b"\x82\x83\x84", "an entry of Python's extension registry"),
    **dict.fromkeys(b"\x97\x98", "a buffer that is not in the file"),
}
