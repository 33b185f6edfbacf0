"""CSV files, plain or compressed: types from samples, and records parsed by Arrow."""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pydantic import ValidationError

from penstock.config.errors import ConfigError, DataError, hint
from penstock.config.load import value_problems
from penstock.readers import FORMATS
from penstock.readers.columns import declared_types, join_types, plain_type, project
from penstock.readers.csv_form import (
    CsvForm,
    CsvRecords,
    doubtful_setting,
    find_delimiter,
    first_row,
    read_form,
)
from penstock.readers.files import DataFile
from penstock.readers.indexed_files import (
    HAS_CHANGED,
    ScannedRecords,
    index_text,
    sample_texts,
)
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of
from penstock.readers.sections import Field, ReadingSection, parse_fields
from penstock.readers.text_file import as_text_files, log_once, not_utf8

_COPIES_OF_TEXT = 4  # the text, its cells in the parser, and strings as columns, which grow by doubling
_ESCAPES = {"\\t": "\t", "tab": "\t", "\\x01": "\x01", "\\x02": "\x02"}
_CELL_BYTES = 4  # of each cell in the parser
_VALUE_BYTES = 9  # of each value in a column: a number or an offset, and whether it is null
_NUMBER_BYTES = 8
_LONG_INTEGER = r"^\s*[+-]?\d{16,}\s*$"
"""Integers that a float64 would round: ids beyond int64 stay strings."""
_COMMA_NUMBER = r"^\s*[+-]?\d+,\d+\s*$"
_AS_STRINGS = "input_type STRING in data_config.input_fields keeps a column as it is written"

_LOCATED = re.compile(
    r"(?:In CSV column #(?P<column>\d+): )?(?:CSV parse error: )?Row #\d+: (?P<problem>.*)", re.S
)
_BAD_VALUE = re.compile(r"CSV conversion error to (?P<type>.+?): invalid value '(?P<value>.*)'", re.S)
_BAD_WIDTH = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+)")


def scan_csv(reading: ReadingSection, files: Sequence[DataFile], wanted: ReadRequest) -> ScannedFiles:
    if reading.delimiter is not None and not reading.delimiter.isascii():
        raise ConfigError.at("data_config.delimiter", f"is '{reading.delimiter}'; use an ASCII character")
    files = as_text_files(files, reading.encoding)
    delimiter = find_delimiter(files[0], reading, wanted.columns or ())
    framing = CsvRecords(delimiter)
    forms = [read_form(file, delimiter, reading, wanted.columns or ()) for file in files]
    for found in filter(None, dict.fromkeys(form.found_header for form in forms)):
        paths = [form.path for form in forms if form.found_header == found]
        log_once(f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}: {found}")
    columns = forms[0].names if wanted.columns is None else wanted.columns
    for form in forms:
        try:
            project(pa.schema([(name, pa.string()) for name in form.names]), columns, form.path)
        except DataError as error:
            setting = doubtful_setting(form)
            if setting is None or "there is no column" not in str(error):
                raise
            end = "" if str(error).endswith("?") else "."
            raise DataError(f"{error}{end} Is {setting} right?", setting) from error
    indexes = index_text(files, [form.data_start for form in forms], framing, wanted.index_dir)
    declared = {
        # Lists and maps stay strings: the features split them.
        name: pa.string() if pa.types.is_nested(declared) else declared
        for name, declared in declared_types(reading).items()
    }
    sampled = ((forms[index], text) for index, text in sample_texts(files, indexes, framing))
    hashed = set(wanted.text_columns) - set(declared)
    types, sizes = _sample_columns(sampled, columns, declared, hashed)
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
        whole_numbers={name for name in hashed.intersection(types) if pa.types.is_floating(types[name])},
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
    encoding: str | None = None,
    decimal: str | None = None,
) -> ReadingSection:
    """How files are read that no run file describes, by the options of a command.

    CSV columns without a header and without declared fields are named c0, c1, ...
    """
    if dataset_type is not None and dataset_type not in FORMATS:
        raise ConfigError(f"--dataset-type: there is no '{dataset_type}'; {hint(dataset_type, FORMATS)}")
    found_type = dataset_type_of(ReadingSection(dataset_type=dataset_type), files)
    of_csv = {"--delimiter": delimiter, "--decimal": decimal, "--no-header": None if with_header else True}
    for option, value in of_csv.items():
        if value is not None and found_type != "CsvDataset":
            raise ConfigError(f"{option} has no effect: {files[0].path} is not CSV")
    if encoding is not None and found_type not in ("CsvDataset", "JsonDataset"):
        raise ConfigError(f"--encoding has no effect: {files[0].path} is neither CSV nor JSON")
    if delimiter is not None:
        delimiter = _ESCAPES.get(delimiter, delimiter)
        if len(delimiter) != 1 or not delimiter.isascii():
            raise ConfigError(f"--delimiter is {delimiter!r}; columns are separated by one ASCII character")
    try:
        declared = parse_fields(fields or "")
    except ValueError as error:
        raise ConfigError(f"--fields {error}") from error
    options = {"dataset_type": dataset_type, "delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    written = {name: value for name, value in options.items() if value is not None}
    try:
        reading = ReadingSection(**written, input_fields=declared, with_header=with_header)  # type: ignore[arg-type]
    except ValidationError as error:
        [problem, *_] = value_problems(error, ReadingSection)
        raise ConfigError(f"--{problem.path[0] if problem.path else 'decimal'}: {problem.message}") from error
    if with_header or declared:
        return reading
    [first] = as_text_files(files[:1], reading.encoding)
    cells = first_row(first, find_delimiter(first, reading)).cells
    names = [Field(input_name=f"c{index}") for index in range(len(cells))]
    return reading.model_copy(update={"input_fields": names})


def _decode(text: bytes | memoryview, form: CsvForm, types: Mapping[str, Any], **parse: Any) -> pa.Table:
    """Some columns, None: of the type that their values have. One block, since Arrow counts rows from its start."""
    known = {name: value_type for name, value_type in types.items() if value_type is not None}
    return pyarrow.csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),  # type: ignore[arg-type]
        read_options=pyarrow.csv.ReadOptions(
            column_names=list(form.names), use_threads=False, block_size=max(len(text), 1) + 1
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=form.delimiter, **parse),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=known, include_columns=list(types), decimal_point=form.decimal
        ),
    )


def _sample_columns(
    texts: Iterable[tuple[CsvForm, bytes]],
    names: Sequence[str],
    declared: Mapping[str, pa.DataType],
    hashed: Collection[str],
) -> tuple[dict[str, pa.DataType], tuple[int, int]]:
    """The types of columns; the bytes of a row in memory, with its origin, and as text.

    Types are the narrowest that hold every sampled value, string where nothing else does; declared ones stay. What is
    `hashed` is a string, unless it holds whole numbers as programs write floats: 138.0 must hash as the 138 of other
    formats. Records with another number of cells are left out, and cells are not converted to declared types: reading
    reports both.
    """
    known = {**dict.fromkeys(hashed, pa.string()), **declared}
    types: dict[str, pa.DataType] = {name: known.get(name, pa.null()) for name in names}
    # Such columns with a file and a value that show it: one that ends with .0, or that has a decimal comma.
    whole = {name: ("", "") for name in names if name in hashed}
    commas: dict[str, tuple[str, str]] = {}
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
            if (
                pa.types.is_string(value_type)
                and form.delimiter != ","
                and _all_match(table[name], _COMMA_NUMBER)
            ):
                commas[name] = form.path, _first_match(table[name], _COMMA_NUMBER)
            types[name] = join_types(types[name], value_type)
        for name in list(whole):
            point = re.escape(form.decimal)
            if not _all_match(table[name], rf"^(0|-?[1-9][0-9]{{0,14}})({point}0+)?$", or_none=True):
                del whole[name]
            elif value := _first_match(table[name], rf"{point}0+$"):
                whole[name] = form.path, value
        strings = [name for name in names if pa.types.is_string(types[name])]
        num_fixed = len(names) - len(strings)
        num_rows += table.num_rows
        num_bytes += table.select(strings).nbytes + table.num_rows * (num_fixed + 1) * _NUMBER_BYTES
        text_row_bytes = max(text_row_bytes, len(text) // max(1, table.num_rows))
    for name, value_type in types.items():
        types[name] = pa.string() if plain_type(value_type) is None else value_type
    whole = {name: shown for name, shown in whole.items() if shown[1]}
    commas = {name: shown for name, shown in commas.items() if pa.types.is_string(types[name])}
    types.update(dict.fromkeys(whole, pa.float64()))
    of_whole = f"whole numbers such as {{}} are read as numbers; {_AS_STRINGS}"
    of_commas = (
        "values such as {} are read as strings; where they are numbers, set data_config.decimal to ','"
    )
    for found_in, what, level in ((whole, of_whole, logging.INFO), (commas, of_commas, logging.WARNING)):
        if found_in:
            path, value = next(iter(found_in.values()))
            which = f"column{'s' * (len(found_in) > 1)} {', '.join(map(repr, found_in))}"
            log_once(f"{path}: {which}: {what.format(value)}", level)
    return types, (max(1, -(-num_bytes // max(1, num_rows))), text_row_bytes)


def _all_match(values: Any, pattern: str, or_none: bool = False) -> bool:
    """Whether all values that are not empty match a pattern; without such a value: `or_none`."""
    values = values.filter(pc.greater(pc.binary_length(values), pa.scalar(0)))
    matching = pc.all(pc.match_substring_regex(values, pattern)).as_py()
    return bool(matching) if len(values) else or_none


def _first_match(values: Any, pattern: str) -> str:
    found = values.filter(pc.match_substring_regex(values, pattern)).slice(0, 1)
    return str(found.cast(pa.string())[0].as_py()) if len(found) else ""


@dataclass(kw_only=True, eq=False)
class ScannedCsv(ScannedRecords):
    """A bad record is an error, or goes to the quarantine with nulls in its place."""

    forms: tuple[CsvForm, ...]
    whole_numbers: Collection[str] = ()
    """Columns that are hashed, and were found to hold numbers."""

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        form = self.forms[file_index]
        try:
            rows = self._decode(text, form)
        except pa.ArrowInvalid:
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
                problem, column, value = self._explain(str(error), form, part)
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

    def _explain(self, message: str, form: CsvForm, text: memoryview) -> tuple[str, str | None, str | None]:
        """What Arrow says about a bad record: the problem, the column and the value as users know them."""
        located = _LOCATED.match(message)
        if located is None:
            return f"cannot be read as CSV: {message}", None, None
        column = form.names[int(located["column"])] if located["column"] else None
        if bad := _BAD_VALUE.match(located["problem"]):
            cure = "correct it, or declare another type in data_config.input_fields"
            if form.delimiter != "," and re.search(_COMMA_NUMBER, bad["value"]):
                cure = "where a comma is the decimal point, set data_config.decimal to ','"
            elif column in self.whole_numbers:
                cure = f"sampled values of this column were whole numbers such as 138.0; {_AS_STRINGS}"
            return f"is not {bad['type']}; {cure}", column, bad["value"]
        if bad := _BAD_WIDTH.match(located["problem"]):
            problem = f"has {bad['found']} columns, not {bad['expected']}; is data_config.delimiter right?"
            return problem, None, None
        problem = not_utf8(text) if "invalid UTF8" in located["problem"] else located["problem"]
        return problem, column, None
