"""What a pickle may name: a few constructors, each a function of ours that takes plain values and checks them.

A damaged or malicious description of a type gets no array of raw pointers, and a number gets no room.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from penstock.store.plain_pickle.values import NotPlain, check_keys, shown

_PLAIN_TYPE = re.compile(r"[biuf]\d{1,2}|[SU]\d{1,6}|O8?|\?")
_OLD_BUILTINS = "__builtin__"
"""What protocols up to 2 call it."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name, as it lies on the stack until it is called."""

    call: Callable[..., Any]


@dataclass(slots=True, eq=False)
class Unbuilt:
    """What is named first, and described later."""

    build: Callable[[Any], Any]
    """Makes the value, of its description."""
    memo_place: int | None = None


def named(module: Any, name: Any) -> Named:
    """What a pickle may call by this name."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise NotPlain("a name that is no text")
    found = _NAMES.get(("builtins" if module == _OLD_BUILTINS else module, name))
    if found is None:
        raise NotPlain(shown(f"{module}.{name}"))
    return found


def _dtype(code: Any, *_: Any) -> Unbuilt:
    """A number, text of fixed length, or object; the order of its bytes comes later."""
    if not isinstance(code, str) or not _PLAIN_TYPE.fullmatch(code):
        raise NotPlain(f"an array of type {_quoted(code)}")
    return Unbuilt(partial(_described_dtype, np.dtype(code)))


def _described_dtype(dtype: np.dtype[Any], state: tuple[Any, ...]) -> np.dtype[Any]:
    _, order, *parts = state[:5]
    if any(part is not None for part in parts):
        raise NotPlain("an array of named fields")
    return dtype.newbyteorder(order) if order in ("<", ">") else dtype


def _empty_array(*_: Any) -> Unbuilt:
    """Whatever comes with it, class and shape and type, comes again later."""
    return Unbuilt(_described_array)


def _described_array(state: tuple[Any, ...]) -> Any:
    _, shape, dtype, is_column_major, content = state
    return _array(content, dtype, shape, "F" if is_column_major else "C")


def _array(content: Any, dtype: Any, shape: Any, order: str) -> Any:
    if not isinstance(dtype, np.dtype) or order not in ("C", "F"):
        raise NotPlain("an array of an unknown type")
    if dtype.hasobject != isinstance(content, list):
        raise NotPlain("an array of values of another type")
    values = np.fromiter(content, object) if dtype.hasobject else np.frombuffer(content, dtype)
    return values.reshape(shape, order=order)  # type: ignore[call-overload]


def _scalar(dtype: Any, content: bytes) -> Any:
    if not isinstance(dtype, np.dtype) or dtype.hasobject:
        raise NotPlain("a number of an unknown type")
    return np.frombuffer(content, dtype)[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise NotPlain(f"the encoding {_quoted(encoding)}")
    return text.encode("latin1")


def _bytearray(content: str | bytes = b"", encoding: str = "latin1") -> bytearray:
    """Not of a number: a short pickle would ask for any number of bytes."""
    if not isinstance(content, str | bytes):
        raise NotPlain(f"a bytearray of type {type(content).__name__}")
    return bytearray(_encode(content, encoding.replace("-", "")) if isinstance(content, str) else content)


def _no_bytes() -> bytes:
    """As old protocols have them, where there are none; others come encoded as text."""
    return b""


def _set(items: Collection[Any] = ()) -> set[Any]:
    check_keys(items)
    return set(items)


def _frozenset(items: Collection[Any] = ()) -> frozenset[Any]:
    return frozenset(_set(items))


def _dict(pairs: Collection[Any] = ()) -> dict[Any, Any]:
    check_keys([key for key, _ in pairs])
    return dict(pairs)


def _quoted(value: Any) -> str:
    return f"'{shown(value)}'" if isinstance(value, str) else type(value).__name__


_NAMES = {
    ("builtins", "set"): Named(_set),
    ("builtins", "frozenset"): Named(_frozenset),
    ("builtins", "complex"): Named(complex),
    ("builtins", "bytes"): Named(_no_bytes),
    ("builtins", "bytearray"): Named(_bytearray),
    ("collections", "OrderedDict"): Named(_dict),
    ("_codecs", "encode"): Named(_encode),
    ("numpy", "dtype"): Named(_dtype),
    ("numpy", "ndarray"): Named(_empty_array),
    **{
        (f"{package}.{module}", name): Named(call)
        for package in ("numpy.core", "numpy._core")
        for module, name, call in (
            ("multiarray", "_reconstruct", _empty_array),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _array),
        )
    },
}
