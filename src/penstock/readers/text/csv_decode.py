"""One block of CSV text -> columns, and a good error for a value that does not fit its column."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from penstock.config.errors import DataError
from penstock.readers.text.parsing import ParseCost

_COPIES_OF_TEXT = 3
"""The text, its cells in the parser, and the values of text columns."""
_CELL_BYTES = 4
"""Of each cell in the parser."""
_VALUE_BYTES = 9
"""Of each value in a column: a number or an offset, and whether it is null."""

_PLACE = re.compile(
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


@dataclass(frozen=True)
class CsvParser:
    """Reads records of CSV with Arrow."""

    forms: tuple[CsvForm, ...]
    columns: pa.Schema

    @cached_property
    def cost(self) -> ParseCost:
        """The text, its cells as Arrow's parser holds them, and the columns."""
        num_cells = max(len(form.names) for form in self.forms)
        return ParseCost(_COPIES_OF_TEXT, _CELL_BYTES * num_cells + _VALUE_BYTES * (len(self.columns) + 1))

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        """As `RecordParser` says."""
        form = self.forms[file_index]
        types = dict(zip(self.columns.names, self.columns.types, strict=True))
        try:
            table = _parse(text, form, {"column_types": types, "include_columns": self.columns.names})
        except pa.ArrowInvalid as error:
            raise _explain(str(error), form, first_row) from error
        if table.num_rows != num_records:
            raise DataError(f"{form.path}: has changed while it was being read")
        return table.combine_chunks().to_batches()[0]


def decode_sample(
    text: bytes, form: CsvForm, names: Sequence[str], as_type: pa.DataType | None = None
) -> pa.Table:
    """Some records, with types found from their values; a torn record at either end is left out."""
    types = {} if as_type is None else dict.fromkeys(names, as_type)
    convert = {"column_types": types, "include_columns": list(names)}
    return _parse(text, form, convert, invalid_row_handler=lambda _: "skip")


def _parse(text: bytes | memoryview, form: CsvForm, convert: dict[str, Any], **parse: Any) -> pa.Table:
    # One block for Arrow as well: it counts rows from its start, and a line end in quotes cannot tear.
    read_options = pc.ReadOptions(
        column_names=list(form.names), use_threads=False, block_size=max(len(text), 1) + 1
    )
    return pc.read_csv(
        pa.BufferReader(pa.py_buffer(text)),  # type: ignore[arg-type]
        read_options=read_options,
        parse_options=pc.ParseOptions(delimiter=form.delimiter, **parse),
        convert_options=pc.ConvertOptions(**convert),
    )


def _explain(message: str, form: CsvForm, first_row: int) -> DataError:
    """Arrow's message, with the row counted from the start of the file and the column by its name."""
    place = _PLACE.match(message)
    if place is None:
        return DataError(f"{form.path}: cannot be read as CSV: {message}")
    row = first_row + int(place["row"]) - 1
    column = form.names[int(place["column"])] if place["column"] else None
    bad_value, bad_width = _BAD_VALUE.match(place["problem"]), _BAD_WIDTH.match(place["problem"])
    if bad_value:
        problem = (
            f"is not {bad_value['type']}; correct it, or declare another type in data_config.input_fields"
        )
        return DataError.at(problem, file=form.path, row=row, column=column, value=bad_value["value"])
    if bad_width:
        problem = (
            f"has {bad_width['found']} columns, not {bad_width['expected']}; is data_config.delimiter right?"
        )
        return DataError.at(problem, file=form.path, row=row)
    return DataError.at(place["problem"], file=form.path, row=row, column=column)
