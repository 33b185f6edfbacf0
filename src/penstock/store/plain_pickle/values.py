"""What a pickle of plain data may come to, and how much of it."""

import math
from collections.abc import Collection
from types import NoneType
from typing import Any

import numpy as np

MOST_LEVELS = 32
"""Of containers in one another; samples have five or so."""
_LEAST_VALUES, _MOST_VALUES_PER_BYTE = 1 << 20, 256
"""How many values a pickle may come to, small or large: a container may be there many times for two bytes each."""
_MOST_KEY_PARTS = 16
_MOST_NUMBER_KEYS = 1 << 11
_MOST_SHOWN = 80

_NUMBERS = {bool, int, float}
_KEYS = {*_NUMBERS, complex, str, bytes, NoneType}
_SINGLE = {*_KEYS, bytearray}


class NotPlain(Exception):
    """What a pickle of plain data has no use for."""


def shown(text: object) -> str:
    """Text of a file as it may stand in a message: on one line, without control characters, and not long."""
    escaped = repr(str(text))[1:-1]
    return escaped if len(escaped) <= _MOST_SHOWN else f"{escaped[:_MOST_SHOWN]}..."


def check_keys(keys: Collection[Any], num_known: int = 0) -> None:
    """Refuse keys that cost more than their bytes, beside those that a container has already.

    Python looks all through a key, however deep: keys are single values, or a few of them in a row. And whoever
    chooses numbers can choose them so that each is compared to all others, which text does not allow.
    """
    if num_known + len(keys) > _MOST_NUMBER_KEYS and not {str, bytes}.issuperset(map(type, keys)):
        raise NotPlain(f"more than {_MOST_NUMBER_KEYS} keys that are no text")
    for key in keys:
        parts = key if type(key) is tuple else (key,)
        if len(parts) > _MOST_KEY_PARTS:
            raise NotPlain(f"a key of {len(parts)} parts")
        for part in parts:
            if type(part) not in _KEYS and not isinstance(part, np.generic):
                raise NotPlain(f"a {type(part).__name__} in a key")


def check_plain(value: Any, num_bytes: int) -> None:
    """Refuse what is not plain, what is too deep, and what a pickle of so many bytes makes far too many values of."""
    num_values = _measured(value, 0, {})[1]
    if num_values > _LEAST_VALUES + num_bytes * _MOST_VALUES_PER_BYTE:
        raise NotPlain(f"{_rounded(num_values)} values, in {num_bytes} bytes")


def _measured(value: Any, depth: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """How many levels a value has, and how many values are in it; what is there many times is looked at once."""
    if type(value) in _SINGLE or isinstance(value, np.generic):
        return 0, 1
    if id(value) not in known:
        _check_levels(depth)
        known[id(value)] = _measured_container(value, depth, known)
    return known[id(value)]


def _measured_container(value: Any, depth: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    items = _items(value)
    own = _num_places(value) if isinstance(value, np.ndarray) else len(value)
    if _NUMBERS.issuperset(map(type, items)):
        return 1, own
    parts = [_measured(item, depth + 1, known) for item in items]
    levels = 1 + max(levels for levels, _ in parts)
    _check_levels(levels)
    return levels, own + sum(num_values for _, num_values in parts)


def _items(value: Any) -> Collection[Any]:
    """What is in a container; nothing where it can be numbers alone."""
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist() if value.dtype.hasobject else ()
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    raise NotPlain("a name, or an array without values, as a value")


def _check_levels(levels: int) -> None:
    if levels > MOST_LEVELS:
        raise NotPlain(f"more than {MOST_LEVELS} containers in one another")


def _num_places(array: np.ndarray[Any, Any]) -> int:
    """How many values an array has; one with no values may have any number of empty rows."""
    return math.prod(max(1, length) for length in array.shape)


def _rounded(number: int) -> str:
    return f"{number:,}" if number < 10**15 else "countless"
