"""Unpickling of plain data: containers, numbers, text, and NumPy's arrays. Nothing else is ever called.

A pickle is a program, and whoever wrote the file wrote the program. Here the only things that it can name are the
constructors below, and those of NumPy are replaced by our own, which take numbers and nothing that could be more: a
damaged or malicious description of a type gets no array of raw pointers.
"""

import collections
import pickle
import re
from collections.abc import Callable
from functools import partial
from typing import IO, Any

import numpy as np

from penstock.config.errors import DataError

_PLAIN_TYPE = re.compile(r"[biuf]\d{1,2}|[SU]\d{1,6}|O8?|\?")
_OLD_BUILTINS = "__builtin__"
"""What protocols up to 2 call it."""
_CONTAINERS = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "complex"): complex,
    ("collections", "OrderedDict"): collections.OrderedDict,
}


def read_plain_pickle(stream: IO[bytes], place: str) -> Any:
    """What a pickle holds, if it is plain; DataError, and nothing done, if it is more or is damaged."""
    try:
        return _plain(_PlainUnpickler(stream).load(), {})
    except _NotPlain as error:
        raise DataError(
            f"{place}: its pickle asks for {error}; only plain containers, numbers, text and NumPy arrays are read, "
            "and nothing of it was run"
        ) from None
    except Exception as error:
        raise DataError(f"{place}: is no whole pickle of plain data: {_first_line(error)}") from error


def _plain(value: Any, known: dict[int, Any]) -> Any:
    """The same with arrays for what stood in for them; what is there many times is looked at once."""
    if not isinstance(value, _Array | dict | list | tuple | np.ndarray):
        return value
    if id(value) not in known:
        known[id(value)] = _converted(value, known)
    return known[id(value)]


def _converted(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, _Array):
        return _plain(value.value, known)
    if isinstance(value, dict):
        return {_plain(key, known): _plain(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return value if _has_only_numbers(value) else [_plain(item, known) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item, known) for item in value)
    if not value.dtype.hasobject:
        return value
    items = np.empty(value.size, object)
    items[:] = [_plain(item, known) for item in value.reshape(-1)]
    return items.reshape(value.shape)


def _has_only_numbers(values: list[Any]) -> bool:
    return {float, int, bool}.issuperset(map(type, values))


class _NotPlain(Exception):
    """A name that a pickle of plain data has no use for."""


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream)
        self._known = {**_CONTAINERS, **_stand_ins()}

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._known["builtins" if module == _OLD_BUILTINS else module, name]
        except KeyError:
            raise _NotPlain(f"{module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise _NotPlain(f"the object {pid!r} of another file")


class _DType:
    """Stands in for a dtype: a number, text of fixed length, or object, in one of two orders of bytes."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not _PLAIN_TYPE.fullmatch(code):
            raise _NotPlain(f"an array of type {code!r}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, order, *parts = state[:5]
        if any(part is not None for part in parts):
            raise _NotPlain("an array of named fields")
        if order in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stands in for an array until all of it is known."""

    value: Any = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_column_major, content = state
        self.value = _array(content, dtype, shape, "F" if is_column_major else "C")


def _array(content: Any, dtype: Any, shape: Any, order: str) -> Any:
    if not isinstance(dtype, _DType) or order not in ("C", "F"):
        raise _NotPlain("an array of an unknown type")
    if not dtype.dtype.hasobject:
        return np.frombuffer(content, dtype.dtype).reshape(shape, order=order).copy()  # type: ignore[call-overload]
    items = np.empty(len(content), object)
    items[:] = list(content)
    return items.reshape(shape, order=order)  # type: ignore[call-overload]


def _scalar(dtype: Any, content: bytes) -> Any:
    if not isinstance(dtype, _DType) or dtype.dtype.hasobject:
        raise _NotPlain("a number of an unknown type")
    return np.frombuffer(content, dtype.dtype)[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise _NotPlain(f"the encoding {encoding!r}")
    return text.encode("latin1")


def _bytearray(content: str | bytes = b"", encoding: str = "latin1") -> bytearray:
    """Not of a number: a short pickle would ask for any number of bytes."""
    if not isinstance(content, str | bytes):
        raise _NotPlain(f"a bytearray of {content!r}")
    return bytearray(_encode(content, encoding.replace("-", "")) if isinstance(content, str) else content)


def _stand_ins() -> dict[tuple[str, str], Callable[..., Any]]:
    """New ones each time: what a pickle does to them is gone with it."""
    dtype_class, array_class = type("dtype", (_DType,), {}), type("ndarray", (_Array,), {})
    names: dict[tuple[str, str], Callable[..., Any]] = {
        ("numpy", "dtype"): dtype_class,
        ("numpy", "ndarray"): array_class,
        ("_codecs", "encode"): partial(_encode),
        ("builtins", "bytearray"): partial(_bytearray),
    }
    for package in ("numpy.core", "numpy._core"):
        names[f"{package}.multiarray", "_reconstruct"] = lambda *_: array_class()
        names[f"{package}.multiarray", "scalar"] = partial(_scalar)
        names[f"{package}.numeric", "_frombuffer"] = partial(_array)
    return names


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
