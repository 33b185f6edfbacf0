"""Where records of CSV text end: at line ends that are not inside quotes.

A quote opens a quoted cell only where a cell begins; inside an unquoted cell, as in `5" disk`, it is a character
like any other. That is how Arrow reads it.
"""

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_QUOTE, _LINE_END = ord('"'), ord("\n")


def end_of_last_record(text: bytes, delimiter: str = ",") -> int:
    r"""Just after the last line end that is not inside quotes; 0 when there is none.

    >>> end_of_last_record(b'1,2\n3,"a\nb')
    4
    """
    last = text.rfind(b"\n")
    if last < 0 or text.find(b'"', 0, last) < 0:
        return last + 1
    characters = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(characters == _QUOTE)
    if not _is_each_structural(characters, quotes, delimiter):
        return _records(delimiter).match(text).end()  # type: ignore[union-attr]
    if np.searchsorted(quotes, last) % 2 == 0:
        return last + 1
    line_ends = np.flatnonzero(characters == _LINE_END)
    outside = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    return int(outside[-1]) + 1 if outside.size else 0


def end_of_first_record(text: bytes, delimiter: str = ",") -> int:
    """Just after the first line end that is not inside quotes; 0 when there is none."""
    found = _record(delimiter).match(text)
    return found.end() if found else 0


def _is_each_structural(characters: NDArray[np.uint8], quotes: NDArray[np.int64], delimiter: str) -> bool:
    """Whether all quotes open, close or are doubled, so that counting them tells what is inside."""
    if not delimiter.isascii():
        return False
    is_boundary = np.zeros(256, np.bool_)
    is_boundary[list(delimiter.encode() + b'\r\n"')] = True
    before_opening, after_closing = quotes[::2] - 1, quotes[1::2] + 1
    if before_opening[0] < 0:
        before_opening = before_opening[1:]
    if after_closing.size and after_closing[-1] == len(characters):
        after_closing = after_closing[:-1]
    return bool(
        is_boundary[characters[before_opening]].all() and is_boundary[characters[after_closing]].all()
    )


@lru_cache
def _records(delimiter: str) -> re.Pattern[bytes]:
    return re.compile(b"(?:" + _record(delimiter).pattern + b")*+")


@lru_cache
def _record(delimiter: str) -> re.Pattern[bytes]:
    """One record with its line end. Nothing is tried twice: the pattern takes time in proportion to the text."""
    mark = re.escape(delimiter.encode())
    rest = b"(?:(?!" + mark + rb")[^\n])*+"
    cell = rb'(?:"(?:[^"]|"")*+"' + rest + rb'|(?!")' + rest + b")"
    return re.compile(b"(?:" + cell + mark + b")*+" + cell + rb"\n")
