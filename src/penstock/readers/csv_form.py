"""What a CSV file looks like: where records begin, which character separates columns, which row names them."""

import csv
import io
import logging
import re
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import DataFile, data_suffix
from penstock.readers.indexed_files import Framing, line_starts
from penstock.readers.order import Int64Array
from penstock.readers.sections import ReadingSection
from penstock.readers.text_file import BYTE_ORDER_MARK, TextFile, log_once, not_utf8

_MAX_HEADER_BYTES = MIB
_WINDOW_BYTES = 64 * KIB
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'
_DELIMITERS = ("\t", ",", ";", "|")  # of those that fit equally well, the first
_LOOKED_AT_BYTES, _LOOKED_AT_ROWS = 64 * KIB, 100
_SHOWN = 3
_NUMBER = re.compile(r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*")


class CsvRecords(Framing):
    """Records of CSV end at a line end that is not inside quotes, and lines without any character are none.

    A quote opens a quoted cell only where a cell begins; inside an unquoted cell, as in `5" disk`, it is a character
    like any other. That is how Arrow reads it.
    """

    def __init__(self, delimiter: str) -> None:
        self.name = f"csv{delimiter}"
        boundary = delimiter.encode("latin-1") + b"\r\n"
        # A quote at the start of a cell, up to the quote that closes it or to the end.
        self._quoted_cell = re.compile(rb'(?<![^%s])"[^"]*(?:""[^"]*)*(?:"|\Z)' % re.escape(boundary))
        self._is_boundary = np.zeros(256, np.bool_)
        self._is_boundary[list(boundary + b'"')] = True

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        r"""As `Framing` says.

        >>> CsvRecords(",").whole_records(b'1,2\n3,"a\nb', is_all=False)
        (4, 1)
        """
        characters = np.frombuffer(text, np.uint8)
        if b'"' in text:
            ends = self._line_ends(characters)
            end = len(text) if is_all else int(np.append(-1, ends)[-1]) + 1
            return end, len(line_starts(ends, end))
        end = len(text) if is_all else text.rfind(b"\n") + 1
        num_records = 0
        for at in range(0, end, _WINDOW_BYTES):  # in windows that stay in the processor's cache
            window = characters[at : min(end, at + _WINDOW_BYTES + 1)]
            is_end = window == _LINE_FEED
            if b"\r" in text:
                is_end |= window == _RETURN
            # A record begins where a character follows a line end.
            num_records += int(np.count_nonzero(is_end[:-1] > is_end[1:])) + (at == 0 and not is_end[0])
        return end, num_records

    def starts(self, text: bytes | memoryview) -> Int64Array:
        return line_starts(self._line_ends(np.frombuffer(text, np.uint8)), len(text))

    def ends_inside(self, text: bytes) -> bool:
        """As `Framing` says: a line end after the text would be a part of its last cell."""
        if b'"' not in text:
            return False
        ends = self._line_ends(np.frombuffer(text + b"\n", np.uint8))
        return not ends.size or int(ends[-1]) < len(text)

    def _line_ends(self, characters: NDArray[np.uint8]) -> Int64Array:
        ends: Int64Array = np.flatnonzero((characters == _LINE_FEED) | (characters == _RETURN))
        quotes: Int64Array = np.flatnonzero(characters == _QUOTE)
        if not quotes.size:
            return ends
        # Where every quote opens a cell, closes one or is doubled, counting them tells what is inside.
        before_opening, after_closing = quotes[::2] - 1, quotes[1::2] + 1
        before_opening = before_opening[before_opening >= 0]
        after_closing = after_closing[after_closing < len(characters)]
        beside = characters[np.concatenate([before_opening, after_closing])]
        if not self._is_boundary[beside].all():
            cells = [cell.span() for cell in self._quoted_cell.finditer(characters.data)]
            quotes = np.array(cells, np.int64).reshape(-1)
        outside: Int64Array = ends[np.searchsorted(quotes, ends, side="right") % 2 == 0]
        return outside


def find_delimiter(file: DataFile, reading: ReadingSection, names: Sequence[str] = ()) -> str:
    """What the run file says, or else what splits the first rows best.

    That is what finds the most of `names`, the columns that are wanted, in the first row; then as many columns as are
    declared; then rows of one width.
    """
    if reading.delimiter is not None or data_suffix(file.path) == ".tsv":
        return reading.delimiter or "\t"
    with closing(TextFile(file)) as source:
        content = source.read(0, _LOOKED_AT_BYTES)
    text = content.decode("utf-8-sig", errors="replace")
    num_declared = len(reading.resolved_input_fields())
    best, best_score = ";" if reading.decimal == "," else ",", (0, False, 0.0, 0)
    for delimiter in _DELIMITERS:
        if delimiter == reading.decimal:
            continue
        try:
            rows = list(
                islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), _LOOKED_AT_ROWS)
            )
        except csv.Error:
            continue
        if len(content) == _LOOKED_AT_BYTES and len(rows) < _LOOKED_AT_ROWS:
            rows = rows[: max(1, len(rows) - 1)]  # the last one is torn
        rows = [row for row in rows if row]
        width = len(rows[0]) if rows else 0
        if width > 1:
            num_names = len(set(names).intersection(rows[0]))
            same_width = sum(len(row) == width for row in rows) / len(rows)
            score = (num_names, width == num_declared, same_width, width)
            if score > best_score:
                best, best_score = delimiter, score
    if best != "," and best_score[-1]:
        log_once(f"{file.path}: columns are separated by {best!r} (data_config.delimiter)")
    return best


class FirstRow(NamedTuple):
    cells: list[str]
    start: int  # the byte at which it begins
    end: int


def first_row(file: DataFile, delimiter: str) -> FirstRow:
    with closing(TextFile(file)) as source:
        text = source.read(0, _MAX_HEADER_BYTES)
    mark_bytes = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    text = text[mark_bytes:]
    start, end = [*CsvRecords(delimiter).starts(text).tolist(), len(text), len(text)][:2]
    try:
        cells = next(csv.reader([text[start:end].decode()], delimiter=delimiter), [])
    except UnicodeDecodeError as error:
        raise DataError.at(not_utf8(text[start:end]), "data_config.encoding", file=file.path) from error
    except csv.Error as error:
        raise DataError(f"{file.path}: the first row: {error}; is a quote unbalanced?") from error
    return FirstRow(cells, mark_bytes + start, mark_bytes + end)


class CsvForm(NamedTuple):
    path: str
    names: tuple[str, ...]  # all columns, in the order of the file
    data_start: int  # the byte at which the first row begins
    delimiter: str
    decimal: str = "."
    found_header: str = ""  # what the first row is and why, where the run file does not say it


def read_form(file: DataFile, delimiter: str, reading: ReadingSection, wanted: Sequence[str]) -> CsvForm:
    """The columns of a file and where its rows begin; `wanted` are the columns that somebody needs, where known."""
    cells, start, end = first_row(file, delimiter)
    names = tuple(field.input_name for field in reading.resolved_input_fields())
    with_header, found = reading.with_header, ""
    if with_header is None:
        with_header, reason = _find_header(cells, names, wanted)
        if not with_header and not names:
            setting = "data_config.with_header to true"
            shown = ", ".join(map(repr, cells[:_SHOWN])) + (", ..." if len(cells) > _SHOWN else "")
            message = (
                f"must name the columns of {file.path}, whose first row holds none: {shown}; or set {setting}"
            )
            raise ConfigError.at("data_config.input_fields", message, setting)
        what = "a header" if with_header else "data"
        found = f"the first row is {what}: {reason} (data_config.with_header)"
    if with_header:
        numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
        if 2 * len(numbers) > len(cells) and not wanted:
            log_once(
                f"{file.path}: the first row is taken for names, but {', '.join(numbers[:_SHOWN])} are numbers; if it "
                "is data, read without a header",
                logging.WARNING,
            )
        return CsvForm(file.path, tuple(cells), end, delimiter, reading.decimal, found)
    if not names:
        setting = "with_header is true"
        message = f"must name the columns of {file.path}, unless {setting}"
        raise ConfigError.at("data_config.input_fields", message, setting)
    if len(cells) != len(names):
        raise DataError(
            f"{file.path}: the first row has {len(cells)} columns but data_config.input_fields names "
            f"{len(names)}; are delimiter and with_header right?",
            "data_config.input_fields",
            "delimiter and with_header",
        )
    return CsvForm(file.path, names, start, delimiter, reading.decimal, found)


def _find_header(cells: Sequence[str], declared: Sequence[str], wanted: Sequence[str]) -> tuple[bool, str]:
    """Whether a first row names columns, and why.

    A word of the data may be the name of a column too, as `click` of an event: where the columns are declared, more
    than half of the names must be there.
    """
    known = list(dict.fromkeys(wanted or declared))
    found = [name for name in known if name in cells]
    names = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    if found and (2 * len(found) > len(known) or len(declared) != len(cells)):
        return True, f"it has the names {names}" if len(found) > 1 else f"it has the name {names}"
    if declared and len(declared) == len(cells):
        which = f"only {names}" if found else "none"
        return (
            False,
            f"of the names that the run uses it has {which}, and data_config.input_fields names its columns",
        )
    is_names = all(cells) and len(set(cells)) == len(cells) and not any(map(_NUMBER.fullmatch, cells))
    return is_names, "it holds no number" if is_names else "it holds numbers"


def doubtful_setting(form: CsvForm) -> str | None:
    """The setting that is probably wrong where the columns of a file are not those that somebody needs."""
    if len(form.names) == 1 and any(each in form.names[0] for each in _DELIMITERS if each != form.delimiter):
        return "data_config.delimiter"
    return "data_config.with_header" if any(map(_NUMBER.fullmatch, form.names)) else None
