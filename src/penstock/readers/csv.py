"""CSV files, plain or compressed: headers, types from samples, and records parsed by Arrow."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB
from penstock.readers.columns import is_usable, project
from penstock.readers.files import DataFile
from penstock.readers.framing import CsvRecords
from penstock.readers.quarantine import Quarantine
from penstock.readers.record_index import BYTE_ORDER_MARK, TextFile, index_records, sample_texts
from penstock.readers.scan import ReadRequest, ScannedFiles
from penstock.readers.sections import Field, FieldType, ReadingSection
from penstock.readers.stream import row_ids
from penstock.readers.text_decoder import BadRecord, ParseCost, ScannedText

_MAX_HEADER_BYTES = MIB
_COPIES_OF_TEXT = 4
"""The text, its cells in the parser, and strings as columns, which grow by doubling."""
_CELL_BYTES = 4
"""Of each cell in the parser."""
_VALUE_BYTES = 9
"""Of each value in a column: a number or an offset, and whether it is null."""
_NUMBER_BYTES = 8
_DECLARED_TYPES: dict[FieldType, pa.DataType] = {
    FieldType.INT32: pa.int32(),
    FieldType.INT64: pa.int64(),
    FieldType.FLOAT: pa.float32(),
    FieldType.DOUBLE: pa.float64(),
}
"""Lists and maps stay strings: the features split them."""
_LONG_INTEGER = r"^\s*[+-]?\d{16,}\s*$"
"""Integers that a float64 would round: ids beyond int64 stay strings."""

_LOCATED = re.compile(
    r"(?:In CSV column #(?P<column>\d+): )?(?:CSV parse error: )?Row #(?P<row>\d+): (?P<problem>.*)", re.S
)
_BAD_VALUE = re.compile(r"CSV conversion error to (?P<type>.+?): invalid value '(?P<value>.*)'", re.S)
_BAD_WIDTH = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+)")


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How one CSV file is laid out."""

    path: str
    names: tuple[str, ...]
    """All columns, in the order of the file."""
    data_start: int
    """The byte at which the first row begins."""
    delimiter: str


def scan_csv(reading: ReadingSection, files: Sequence[DataFile], wanted: ReadRequest) -> ScannedFiles:
    """Read headers, count records, and find the types that are not declared from samples."""
    if not reading.delimiter.isascii():
        raise ConfigError.at("data_config.delimiter", f"is '{reading.delimiter}'; use an ASCII character")
    fields = reading.resolved_input_fields()
    framing = CsvRecords(reading.delimiter)
    forms = [_read_form(file, reading, fields) for file in files]
    columns = forms[0].names if wanted.columns is None else wanted.columns
    for form in forms:
        project(pa.schema([(name, pa.string()) for name in form.names]), columns, form.path)
    indexes = tuple(
        index_records(file, form.data_start, framing, wanted.index_dir)
        for file, form in zip(files, forms, strict=True)
    )
    known = dict.fromkeys(wanted.text_columns, pa.string()) | {
        field.input_name: _DECLARED_TYPES.get(field.input_type, pa.string())
        for field in fields
        if field.input_type is not None
    }
    sample = _sample_columns(sample_texts(files, indexes, framing), forms, columns, known)
    schema = pa.schema([(name, sample.types[name]) for name in columns])
    parser = CsvParser(tuple(forms), schema, wanted.quarantine)
    return ScannedText(tuple(files), indexes, framing, parser, sample.row_bytes, sample.text_row_bytes)


def _read_form(file: DataFile, reading: ReadingSection, fields: Sequence[Field]) -> CsvForm:
    """How a file is laid out, from its header or from the declared columns."""
    with closing(TextFile(file)) as source:
        text = source.read(0, _MAX_HEADER_BYTES)
    mark_bytes = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    text = text[mark_bytes:]
    start, end = [*CsvRecords(reading.delimiter).starts(text).tolist(), len(text), len(text)][:2]
    try:
        cells = next(csv.reader([text[start:end].decode()], delimiter=reading.delimiter), [])
    except UnicodeDecodeError as error:
        raise DataError(f"{file.path}: is not UTF-8 text; is it CSV?") from error
    if reading.with_header:
        return CsvForm(file.path, tuple(cells), mark_bytes + end, reading.delimiter)
    names = tuple(field.input_name for field in fields)
    if not names:
        raise ConfigError.at(
            "data_config.input_fields", f"must name the columns of {file.path}, unless with_header is true"
        )
    if len(cells) != len(names):
        raise DataError(
            f"{file.path}: the first row has {len(cells)} columns but data_config.input_fields names "
            f"{len(names)}; are delimiter and with_header right?"
        )
    return CsvForm(file.path, names, mark_bytes + start, reading.delimiter)


def _decode(text: bytes | memoryview, form: CsvForm, types: Mapping[str, Any], **parse: Any) -> pa.Table:
    """Columns of at least one record, None: of the type that their values have.

    ArrowInvalid says which record cannot be read. One block for Arrow as well: it counts rows from its start, and a
    line end in quotes cannot tear.
    """
    known = {name: value_type for name, value_type in types.items() if value_type is not None}
    return pyarrow.csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),  # type: ignore[arg-type]
        read_options=pyarrow.csv.ReadOptions(
            column_names=list(form.names), use_threads=False, block_size=max(len(text), 1) + 1
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=form.delimiter, **parse),
        convert_options=pyarrow.csv.ConvertOptions(column_types=known, include_columns=list(types)),
    )


# Types.


@dataclass(slots=True)
class _Sample:
    """What the sampled records of the files say."""

    types: dict[str, pa.DataType]
    num_rows: int = 0
    num_bytes: int = 0
    """Of the rows in memory."""
    text_row_bytes: int = 1
    """Of a row as text: the largest mean of a sampled part."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory, with its origin."""
        return max(1, -(-self.num_bytes // self.num_rows)) if self.num_rows else 1


def _sample_columns(
    texts: Iterable[tuple[int, bytes]],
    forms: Sequence[CsvForm],
    names: Sequence[str],
    known: Mapping[str, pa.DataType],
) -> _Sample:
    """The narrowest types that hold every sampled value, string where nothing else does; `known` types stay.

    `texts`: records, with the index of the form that they have.
    """
    sample = _Sample({name: known.get(name, pa.null()) for name in names})
    for form_index, text in texts:
        form = forms[form_index]
        unknown = [name for name in names if name not in known]
        for name, value_type in _types_in(text, form, unknown).items():
            sample.types[name] = _join_types(sample.types[name], value_type)
        table = _decode_sample(text, form, dict.fromkeys(names, pa.binary()))
        strings = [name for name in names if pa.types.is_string(sample.types[name])]
        num_fixed = len(names) - len(strings)
        sample.num_rows += table.num_rows
        sample.num_bytes += table.select(strings).nbytes + table.num_rows * (num_fixed + 1) * _NUMBER_BYTES
        sample.text_row_bytes = max(sample.text_row_bytes, len(text) // max(1, table.num_rows))
    for name, value_type in sample.types.items():
        sample.types[name] = value_type if is_usable(value_type) else pa.string()
    return sample


def _decode_sample(text: bytes, form: CsvForm, types: Mapping[str, Any]) -> pa.Table:
    """Records with another number of cells are left out: reading reports them."""
    return _decode(text, form, types, invalid_row_handler=lambda _: "skip")


def _types_in(text: bytes, form: CsvForm, names: Sequence[str]) -> dict[str, pa.DataType]:
    if not names:
        return {}
    table = _decode_sample(text, form, dict.fromkeys(names))
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    floats = [name for name, value_type in types.items() if pa.types.is_floating(value_type)]
    if floats:
        cells = _decode_sample(text, form, dict.fromkeys(floats, pa.string()))
        for name in floats:
            if pc.any(pc.match_substring_regex(cells[name], _LONG_INTEGER)).as_py():
                types[name] = pa.string()
    return types


def _join_types(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """The narrowest type that holds the values of both."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    return pa.float64() if {first, second} == {pa.int64(), pa.float64()} else pa.string()


# Records.


@dataclass(frozen=True)
class CsvParser:
    """Reads records of CSV; a bad one is an error, or goes to the quarantine with nulls in its place."""

    forms: tuple[CsvForm, ...]
    columns: pa.Schema
    quarantine: Quarantine | None = None

    @cached_property
    def cost(self) -> ParseCost:
        """The text, its cells as Arrow's parser holds them, and the columns."""
        num_cells = max(len(form.names) for form in self.forms)
        return ParseCost(_COPIES_OF_TEXT, _CELL_BYTES * num_cells + _VALUE_BYTES * (len(self.columns) + 1))

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        form = self.forms[file_index]
        try:
            rows = self._decode(text, form)
        except pa.ArrowInvalid as error:
            if self.quarantine is None:
                raise _explain(str(error), form.names).error(form.path, first_row) from error
            rows = self._decode_carefully(text, form, row_ids(file_index, first_row, 1)[0].as_py())
        if rows.num_rows != num_records:
            raise DataError(f"{form.path}: has changed while it was being read")
        return rows

    def _decode(self, text: memoryview, form: CsvForm) -> pa.RecordBatch:
        types = dict(zip(self.columns.names, self.columns.types, strict=True))
        return _decode(text, form, types).combine_chunks().to_batches()[0]

    def _decode_carefully(self, text: memoryview, form: CsvForm, first_row_id: int) -> pa.RecordBatch:
        """All records of a text with bad ones, halved until each of these stands alone."""
        starts = [*CsvRecords(form.delimiter).starts(text).tolist(), len(text)]

        def rows(first: int, end: int) -> Iterator[pa.RecordBatch]:
            part = text[starts[first] : starts[end]]
            try:
                yield self._decode(part, form)
            except pa.ArrowInvalid as error:
                if end - first == 1:
                    yield self._bad_record(part, form, first_row_id + first, str(error))
                else:
                    middle = (first + end) // 2
                    yield from rows(first, middle)
                    yield from rows(middle, end)

        return pa.Table.from_batches(rows(0, len(starts) - 1)).combine_chunks().to_batches()[0]

    def _bad_record(self, text: memoryview, form: CsvForm, row_id: int, message: str) -> pa.RecordBatch:
        """Nulls stand for what cannot be read."""
        assert self.quarantine is not None
        bad = _explain(message, form.names)
        content = bytes(text).decode(errors="replace").rstrip("\r\n")
        self.quarantine.put(row_id, bad.problem, column=bad.column, value=bad.value, row=content)
        cells: list[Any] = []
        for field in self.columns:
            try:
                cell: Any = _decode(text, form, {field.name: field.type}).column(0).combine_chunks()
            except pa.ArrowInvalid:
                cell = pa.nulls(1, field.type)
            cells.append(cell)
        return pa.RecordBatch.from_arrays(cells, schema=self.columns)


def _explain(message: str, names: Sequence[str]) -> BadRecord:
    """What Arrow says about a bad record, in words that name the column and what to do."""
    located = _LOCATED.match(message)
    if located is None:
        return BadRecord(f"cannot be read as CSV: {message}")
    record = int(located["row"]) - 1
    column = names[int(located["column"])] if located["column"] else None
    if bad := _BAD_VALUE.match(located["problem"]):
        problem = f"is not {bad['type']}; correct it, or declare another type in data_config.input_fields"
        return BadRecord(problem, record, column, bad["value"])
    if bad := _BAD_WIDTH.match(located["problem"]):
        problem = f"has {bad['found']} columns, not {bad['expected']}; is data_config.delimiter right?"
        return BadRecord(problem, record)
    return BadRecord(located["problem"], record, column)
