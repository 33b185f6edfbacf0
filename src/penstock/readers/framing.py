"""Where records of CSV and of JSON lines begin and end.

A record of CSV ends at a line end that is not inside quotes. A quote opens a quoted cell only where a cell begins;
inside an unquoted cell, as in `5" disk`, it is a character like any other. That is how Arrow reads it, and so is
that lines without any character are no records. A record of JSON lines is a line that is not blank.
"""

import re
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.config.sizes import KIB
from penstock.readers.order import Int64Array

Characters = NDArray[np.uint8]
Text = bytes | memoryview

_WINDOW_BYTES = 64 * KIB
_QUOTE, _LINE_FEED, _RETURN, _BRACE, _SPACE = b'"\n\r{ '


class Framing(Protocol):
    """How a format tells one record from the next; all texts begin where a record may begin."""

    name: str
    """Tells apart what would frame the same text differently."""

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        """Where the last record ends, and how many there are up to there; (0, 0): none ends in the text.

        The last record may lack its line end where the text is all there is.
        """
        ...

    def ends_inside(self, text: bytes) -> bool:
        """Whether the text ends inside quotes, so that its last record is torn."""
        ...

    def starts(self, text: Text) -> Int64Array:
        """Where each record begins."""
        ...


class CsvRecords:
    """Records of CSV, which may hold line ends in quotes."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.name = f"csv{delimiter}"
        boundary = re.escape(delimiter.encode("latin-1")) + rb"\r\n"
        # A quote at the start of a cell, up to the quote that closes it or to the end.
        self._quoted_cell = re.compile(rb'(?<![^%s])"[^"]*(?:""[^"]*)*(?:"|\Z)' % boundary)

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        r"""As `Framing` says.

        >>> CsvRecords(",").whole_records(b'1,2\n3,"a\nb', is_all=False)
        (4, 1)
        """
        characters = np.frombuffer(text, np.uint8)
        if b'"' not in text:
            end = len(text) if is_all else text.rfind(b"\n") + 1
            return end, _num_lines(characters[:end], has_returns=b"\r" in text)
        ends = self._ends(characters)
        last = int(ends[-1]) + 1 if ends.size else 0
        end = len(text) if is_all else last
        return end, len(_starts(ends, end))

    def starts(self, text: Text) -> Int64Array:
        return _starts(self._ends(np.frombuffer(text, np.uint8)), len(text))

    def ends_inside(self, text: bytes) -> bool:
        """As `Framing` says: a line end after the text would be a part of its last cell."""
        if b'"' not in text:
            return False
        ends = self._ends(np.frombuffer(text + b"\n", np.uint8))
        return not ends.size or int(ends[-1]) < len(text)

    def _ends(self, characters: Characters) -> Int64Array:
        """The line ends outside quotes."""
        ends: Int64Array = np.flatnonzero((characters == _LINE_FEED) | (characters == _RETURN))
        quotes = np.flatnonzero(characters == _QUOTE)
        if not quotes.size:
            return ends
        edges: Int64Array = quotes
        if not self._is_each_structural(characters, quotes):
            cells = [cell.span() for cell in self._quoted_cell.finditer(characters.data)]
            edges = np.array(cells, np.int64).reshape(-1)
        # Begins and ends of quoted cells alternate: an odd number of them before a line end means inside.
        outside: Int64Array = ends[np.searchsorted(edges, ends, side="right") % 2 == 0]
        return outside

    def _is_each_structural(self, characters: Characters, quotes: Int64Array) -> bool:
        """Whether all quotes open, close or are doubled, so that counting them tells what is inside."""
        is_boundary = np.zeros(256, np.bool_)
        is_boundary[list(self.delimiter.encode("latin-1") + b'\r\n"')] = True
        before_opening, after_closing = quotes[::2] - 1, quotes[1::2] + 1
        if before_opening[0] < 0:
            before_opening = before_opening[1:]
        if after_closing.size and after_closing[-1] == len(characters):
            after_closing = after_closing[:-1]
        return bool(
            is_boundary[characters[before_opening]].all() and is_boundary[characters[after_closing]].all()
        )


class Lines:
    """Records that are lines, as in JSON lines: a line end inside a string is written with a backslash there."""

    name = "lines"

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        end = len(text) if is_all else text.rfind(b"\n") + 1
        return end, len(self.starts(memoryview(text)[:end]))

    def ends_inside(self, text: bytes) -> bool:
        """Never: there are no quotes around line ends."""
        return False

    def starts(self, text: Text) -> Int64Array:
        """As `Framing` says; lines of nothing but spaces are blank."""
        characters = np.frombuffer(text, np.uint8)
        starts = _starts(np.flatnonzero(characters == _LINE_FEED), len(characters))
        if (characters[starts] == _BRACE).all():
            return starts
        visible = np.flatnonzero(characters > _SPACE)
        first_visible = np.append(visible, len(characters))[np.searchsorted(visible, starts)]
        return starts[first_visible < np.append(starts, len(characters))[1:]]


def _num_lines(characters: Characters, has_returns: bool) -> int:
    """How many lines have a character; counted in windows that stay in the processor's cache."""
    num_lines = 0
    for at in range(0, len(characters), _WINDOW_BYTES):
        window = characters[at : at + _WINDOW_BYTES + 1]
        is_end = window == _LINE_FEED
        if has_returns:
            is_end |= window == _RETURN
        num_lines += int(np.count_nonzero(is_end[:-1] > is_end[1:])) + (at == 0 and not is_end[0])
    return num_lines


def _starts(ends: Int64Array, length: int) -> Int64Array:
    """Where lines that have a character begin, given their ends: not where another line ends at once."""
    starts = np.insert(ends + 1, 0, 0)
    return starts[starts < np.append(ends, length)]
