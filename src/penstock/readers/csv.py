"""CSV files, plain or compressed: headers, types from samples, and records parsed by Arrow."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, DataError, hint
from penstock.config.sizes import KIB, MIB
from penstock.readers import FORMATS
from penstock.readers.columns import declared_types, join_types, plain_type, project
from penstock.readers.files import DataFile, data_suffix
from penstock.readers.indexed_files import (
    BYTE_ORDER_MARK,
    HAS_CHANGED,
    RECORD_SETTINGS,
    Framing,
    ScannedRecords,
    TextFile,
    index_text,
    line_starts,
    sample_texts,
)
from penstock.readers.order import Int64Array
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of
from penstock.readers.sections import Field, ReadingSection, parse_fields

_MAX_HEADER_BYTES = MIB
_WINDOW_BYTES = 64 * KIB
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'
_COPIES_OF_TEXT = 4  # the text, its cells in the parser, and strings as columns, which grow by doubling
_ESCAPES = {"\\t": "\t", "tab": "\t", "\\x01": "\x01", "\\x02": "\x02"}
_CELL_BYTES = 4  # of each cell in the parser
_VALUE_BYTES = 9  # of each value in a column: a number or an offset, and whether it is null
_NUMBER_BYTES = 8
_LONG_INTEGER = r"^\s*[+-]?\d{16,}\s*$"
"""Integers that a float64 would round: ids beyond int64 stay strings."""

_LOCATED = re.compile(
    r"(?:In CSV column #(?P<column>\d+): )?(?:CSV parse error: )?Row #(?P<row>\d+): (?P<problem>.*)", re.S
)
_BAD_VALUE = re.compile(r"CSV conversion error to (?P<type>.+?): invalid value '(?P<value>.*)'", re.S)
_BAD_WIDTH = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+)")


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


class CsvForm(NamedTuple):
    path: str
    names: tuple[str, ...]  # all columns, in the order of the file
    data_start: int  # the byte at which the first row begins
    delimiter: str


def scan_csv(reading: ReadingSection, files: Sequence[DataFile], wanted: ReadRequest) -> ScannedFiles:
    if not reading.delimiter.isascii():
        raise ConfigError.at("data_config.delimiter", f"is '{reading.delimiter}'; use an ASCII character")
    framing = CsvRecords(reading.delimiter)
    forms = [_read_form(file, reading) for file in files]
    columns = forms[0].names if wanted.columns is None else wanted.columns
    for form in forms:
        project(pa.schema([(name, pa.string()) for name in form.names]), columns, form.path)
    indexes = index_text(files, [form.data_start for form in forms], framing, wanted.index_dir)
    known = dict.fromkeys(wanted.text_columns, pa.string())
    for name, declared in declared_types(reading).items():
        # Lists and maps stay strings: the features split them.
        known[name] = pa.string() if pa.types.is_nested(declared) else declared
    sampled = ((forms[index], text) for index, text in sample_texts(files, indexes, framing))
    types, sizes = _sample_columns(sampled, columns, known)
    return ScannedCsv(
        files=tuple(files),
        columns=pa.schema(list(types.items())),
        indexes=indexes,
        framing=framing,
        sampled_row_bytes=sizes[0],
        text_row_bytes=sizes[1],
        costs=parse_costs(forms, len(columns)),
        quarantine=wanted.quarantine,
        forms=tuple(forms),
    )


def parse_costs(forms: Sequence[CsvForm], num_columns: int) -> tuple[int, int]:
    """The text, its cells as Arrow's parser holds them, and the columns."""
    num_cells = max(len(form.names) for form in forms)
    return _COPIES_OF_TEXT, _CELL_BYTES * num_cells + _VALUE_BYTES * (num_columns + 1)


def reading_of(
    files: list[DataFile],
    *,
    delimiter: str | None = None,
    with_header: bool = True,
    fields: str | None = None,
    dataset_type: str | None = None,
) -> ReadingSection:
    """How files are read that no run file describes, by the options of a command.

    CSV columns without a header and without declared fields are named c0, c1, ...
    """
    if dataset_type is not None and dataset_type not in FORMATS:
        raise ConfigError(f"--dataset-type: there is no '{dataset_type}'; {hint(dataset_type, FORMATS)}")
    is_csv = dataset_type_of(ReadingSection(dataset_type=dataset_type), files) == "CsvDataset"
    if not is_csv and (delimiter is not None or not with_header):
        option = "--delimiter" if delimiter is not None else "--no-header"
        raise ConfigError(f"{option} has no effect: {files[0].path} is not CSV")
    separator = "\t" if data_suffix(files[0].path) == ".tsv" else ","
    if delimiter is not None:
        separator = _ESCAPES.get(delimiter, delimiter)
        if len(separator) != 1 or not separator.isascii():
            raise ConfigError(f"--delimiter is {delimiter!r}; columns are separated by one ASCII character")
    try:
        declared = parse_fields(fields or "")
    except ValueError as error:
        raise ConfigError(f"--fields {error}") from error
    if not with_header and not declared:
        num_columns = len(_first_row(files[0], separator).cells)
        declared = [Field(input_name=f"c{index}") for index in range(num_columns)]
    return ReadingSection(
        dataset_type=dataset_type, input_fields=declared, delimiter=separator, with_header=with_header
    )


class FirstRow(NamedTuple):
    cells: list[str]
    start: int  # the byte at which it begins
    end: int


def _first_row(file: DataFile, delimiter: str) -> FirstRow:
    with closing(TextFile(file)) as source:
        text = source.read(0, _MAX_HEADER_BYTES)
    mark_bytes = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    text = text[mark_bytes:]
    start, end = [*CsvRecords(delimiter).starts(text).tolist(), len(text), len(text)][:2]
    try:
        cells = next(csv.reader([text[start:end].decode()], delimiter=delimiter), [])
    except UnicodeDecodeError as error:
        raise DataError(f"{file.path}: is not UTF-8 text; is it CSV?") from error
    except csv.Error as error:
        raise DataError(f"{file.path}: the first row: {error}; is a quote unbalanced?") from error
    return FirstRow(cells, mark_bytes + start, mark_bytes + end)


def _read_form(file: DataFile, reading: ReadingSection) -> CsvForm:
    cells, start, end = _first_row(file, reading.delimiter)
    if reading.with_header:
        return CsvForm(file.path, tuple(cells), end, reading.delimiter)
    names = tuple(field.input_name for field in reading.resolved_input_fields())
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
    return CsvForm(file.path, names, start, reading.delimiter)


def _decode(text: bytes | memoryview, form: CsvForm, types: Mapping[str, Any], **parse: Any) -> pa.Table:
    """Some columns, None: of the type that their values have. One block, since Arrow counts rows from its start."""
    known = {name: value_type for name, value_type in types.items() if value_type is not None}
    return pyarrow.csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),  # type: ignore[arg-type]
        read_options=pyarrow.csv.ReadOptions(
            column_names=list(form.names), use_threads=False, block_size=max(len(text), 1) + 1
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=form.delimiter, **parse),
        convert_options=pyarrow.csv.ConvertOptions(column_types=known, include_columns=list(types)),
    )


def _sample_columns(
    texts: Iterable[tuple[CsvForm, bytes]], names: Sequence[str], known: Mapping[str, pa.DataType]
) -> tuple[dict[str, pa.DataType], tuple[int, int]]:
    """The types of columns; the bytes of a row in memory, with its origin, and as text.

    Types are the narrowest that hold every sampled value, string where nothing else does; `known` ones stay. Records
    with another number of cells are left out, and cells are not converted to known types: reading reports both.
    """
    types: dict[str, pa.DataType] = {name: known.get(name, pa.null()) for name in names}
    num_rows = num_bytes = 0
    text_row_bytes = 1
    for form, text in texts:
        cell_types = {name: pa.binary() if name in known else None for name in names}
        table = _decode(text, form, cell_types, invalid_row_handler=lambda _: "skip")
        found = {name: table.schema.field(name).type for name in names if name not in known}
        floats = [name for name, value_type in found.items() if pa.types.is_floating(value_type)]
        if floats:
            as_strings = dict.fromkeys(floats, pa.string())
            cells = _decode(text, form, as_strings, invalid_row_handler=lambda _: "skip")
            for name in floats:
                if pc.any(pc.match_substring_regex(cells[name], _LONG_INTEGER)).as_py():
                    found[name] = pa.string()
        for name, value_type in found.items():
            types[name] = join_types(types[name], value_type)
        strings = [name for name in names if pa.types.is_string(types[name])]
        num_fixed = len(names) - len(strings)
        num_rows += table.num_rows
        num_bytes += table.select(strings).nbytes + table.num_rows * (num_fixed + 1) * _NUMBER_BYTES
        text_row_bytes = max(text_row_bytes, len(text) // max(1, table.num_rows))
    for name, value_type in types.items():
        types[name] = pa.string() if plain_type(value_type) is None else value_type
    return types, (max(1, -(-num_bytes // max(1, num_rows))), text_row_bytes)


@dataclass(kw_only=True, eq=False)
class ScannedCsv(ScannedRecords):
    """A bad record is an error, or goes to the quarantine with nulls in its place."""

    forms: tuple[CsvForm, ...]

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        form = self.forms[file_index]
        try:
            rows = self._decode(text, form)
        except pa.ArrowInvalid as error:
            if self.quarantine is None:
                record, problem, column, value = _explain(str(error), form.names)
                row = None if record is None else first_row + record
                raise DataError.at(
                    problem, *RECORD_SETTINGS, file=form.path, row=row, column=column, value=value
                ) from error
            rows = self._decode_carefully(text, file_index, first_row)
        if rows.num_rows != num_records:
            raise DataError(f"{form.path}: {HAS_CHANGED}")
        return rows

    def _decode(self, text: memoryview, form: CsvForm) -> pa.RecordBatch:
        types = dict(zip(self.columns.names, self.columns.types, strict=True))
        return _decode(text, form, types).combine_chunks().to_batches()[0]

    def _decode_carefully(self, text: memoryview, file_index: int, first_row: int) -> pa.RecordBatch:
        """All records of a text with bad ones, halved until each of these stands alone; nulls for what is bad."""
        starts = [*self.framing.starts(text).tolist(), len(text)]
        form = self.forms[file_index]

        def rows(first: int, end: int) -> Iterator[pa.RecordBatch]:
            part = text[starts[first] : starts[end]]
            try:
                yield self._decode(part, form)
            except pa.ArrowInvalid as error:
                if end - first > 1:
                    middle = (first + end) // 2
                    yield from rows(first, middle)
                    yield from rows(middle, end)
                    return
                _, problem, column, value = _explain(str(error), form.names)
                content = bytes(part).decode(errors="replace").rstrip("\r\n")
                row = first_row + first
                self.refuse(file_index, row, problem, column=column, value=value, content=content)
                cells: list[Any] = []
                for field in self.columns:
                    try:
                        cells.append(_decode(part, form, {field.name: field.type}).column(0).combine_chunks())
                    except pa.ArrowInvalid:
                        cells.append(pa.nulls(1, field.type))
                yield pa.RecordBatch.from_arrays(cells, schema=self.columns)

        return pa.Table.from_batches(rows(0, len(starts) - 1)).combine_chunks().to_batches()[0]


def _explain(message: str, names: Sequence[str]) -> tuple[int | None, str, str | None, str | None]:
    """What Arrow says about a bad record: which, and the problem, the column and the value as users know them."""
    located = _LOCATED.match(message)
    if located is None:
        return None, f"cannot be read as CSV: {message}", None, None
    record = int(located["row"]) - 1
    column = names[int(located["column"])] if located["column"] else None
    if bad := _BAD_VALUE.match(located["problem"]):
        problem = f"is not {bad['type']}; correct it, or declare another type in data_config.input_fields"
        return record, problem, column, bad["value"]
    if bad := _BAD_WIDTH.match(located["problem"]):
        problem = f"has {bad['found']} columns, not {bad['expected']}; is data_config.delimiter right?"
        return record, problem, None, None
    return record, located["problem"], column, None
