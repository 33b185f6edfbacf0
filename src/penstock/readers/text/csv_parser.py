"""How CSV is read: what it takes, and what becomes of a record that cannot be read."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.origin import row_ids
from penstock.readers.quarantine import Quarantine
from penstock.readers.text.csv_decode import CsvForm, decode
from penstock.readers.text.csv_problems import explain
from penstock.readers.text.framing import CsvRecords
from penstock.readers.text.parsing import ParseCost, all_null

_COPIES_OF_TEXT = 4
"""The text, its cells in the parser, and texts as columns, which grow by doubling."""
_CELL_BYTES = 4
"""Of each cell in the parser."""
_VALUE_BYTES = 9
"""Of each value in a column: a number or an offset, and whether it is null."""


@dataclass(frozen=True)
class CsvParser:
    """Reads records of CSV; a text with a bad one is an error, or read again with more care."""

    forms: tuple[CsvForm, ...]
    columns: pa.Schema
    quarantine: Quarantine | None = None

    @cached_property
    def cost(self) -> ParseCost:
        """The text, its cells as Arrow's parser holds them, and the columns."""
        num_cells = max(len(form.names) for form in self.forms)
        return ParseCost(_COPIES_OF_TEXT, _CELL_BYTES * num_cells + _VALUE_BYTES * (len(self.columns) + 1))

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        """As `RecordParser` says."""
        form = self.forms[file_index]
        try:
            rows = decode(text, form, self.columns)
        except pa.ArrowInvalid as error:
            if self.quarantine is None:
                raise explain(str(error), form.names).error(form.path, first_row) from error
            rescue = _Rescue(form, self.columns, self.quarantine)
            rows = rescue.read(text, row_ids(file_index, first_row, 1)[0].as_py())
        if rows.num_rows != num_records:
            raise DataError(f"{form.path}: has changed while it was being read")
        return rows


@dataclass(frozen=True, slots=True)
class _Rescue:
    """Reads a text with bad records: nulls stand for what cannot be read."""

    form: CsvForm
    columns: pa.Schema
    quarantine: Quarantine

    def read(self, text: memoryview, first_row_id: int) -> pa.RecordBatch:
        """All records of the text, halved until a bad one stands alone."""
        starts = [*CsvRecords(self.form.delimiter).starts(text).tolist(), len(text)]

        def rows(first: int, end: int) -> Iterator[pa.RecordBatch]:
            part = text[starts[first] : starts[end]]
            try:
                yield decode(part, self.form, self.columns)
            except pa.ArrowInvalid as error:
                if end - first == 1:
                    yield self._bad_record(part, first_row_id + first, str(error))
                else:
                    middle = (first + end) // 2
                    yield from rows(first, middle)
                    yield from rows(middle, end)

        return pa.Table.from_batches(rows(0, len(starts) - 1)).combine_chunks().to_batches()[0]

    def _bad_record(self, text: memoryview, row_id: int, message: str) -> pa.RecordBatch:
        bad = explain(message, self.form.names)
        content = bytes(text).decode(errors="replace").rstrip("\r\n")
        self.quarantine.put(row_id, bad.problem, column=bad.column, value=bad.value, row=content)
        if bad.column is None:
            return all_null(self.columns)
        cells = [self._cell(text, field) for field in self.columns]
        return pa.RecordBatch.from_arrays(cells, schema=self.columns)

    def _cell(self, text: memoryview, field: "pa.Field[Any]") -> Any:
        try:
            return decode(text, self.form, pa.schema([field])).column(0)
        except pa.ArrowInvalid:
            return pa.nulls(1, field.type)
