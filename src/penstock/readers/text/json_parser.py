"""How JSON lines are read: with Arrow, and where that fails, line by line to find what is wrong."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from penstock.readers.origin import row_ids
from penstock.readers.quarantine import Quarantine
from penstock.readers.text.framing import Lines
from penstock.readers.text.json_values import read_line
from penstock.readers.text.parsing import BadRecord, ParseCost

_COPIES_OF_TEXT, _COPIES_OF_LISTS = 3, 8
"""Bytes that a byte of text takes at most; a value of a list may be two characters."""
_VALUE_BYTES = 16
"""Of each value: as Arrow's parser holds it, and in a column."""
_NUMBER_AS_TEXT_BYTES = 24
_END_OF_ASCII = 0x80


@dataclass(frozen=True)
class JsonParser:
    """Reads lines of JSON."""

    paths: tuple[str, ...]
    columns: pa.Schema
    read_columns: pa.Schema
    """The columns as Arrow reads them."""
    quarantine: Quarantine | None = None

    @cached_property
    def cost(self) -> ParseCost:
        """The text, its values as Arrow's parser holds them, and the columns."""
        has_lists = any(pa.types.is_nested(value_type) for value_type in self.columns.types)
        pairs = zip(self.columns.types, self.read_columns.types, strict=True)
        num_cast = sum(given != read for given, read in pairs)
        per_record = _VALUE_BYTES * (len(self.columns) + 1) + _NUMBER_AS_TEXT_BYTES * num_cast
        return ParseCost(_COPIES_OF_LISTS if has_lists else _COPIES_OF_TEXT, per_record)

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        """As `RecordParser` says."""
        rows = self._read(text)
        if rows is None or rows.num_rows != num_records:
            return self._read_lines(text, file_index, first_row)
        return rows

    def _read(self, text: memoryview) -> pa.RecordBatch | None:
        """All lines at once; None where Arrow cannot read them, or reads what is not text."""
        if not _is_utf8(text):
            return None
        try:
            table = pj.read_json(
                pa.BufferReader(pa.py_buffer(text)),  # type: ignore[arg-type]
                read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=pj.ParseOptions(
                    explicit_schema=self.read_columns, unexpected_field_behavior="ignore"
                ),
            )
            rows = table.combine_chunks().to_batches()[0]
            columns = [_as(*pair) for pair in zip(rows.columns, self.columns.types, strict=True)]
        except pa.ArrowInvalid:
            return None
        return pa.RecordBatch.from_arrays(columns, schema=self.columns)

    def _read_lines(self, text: memoryview, file_index: int, first_row: int) -> pa.RecordBatch:
        """Line by line; a bad value is an error, or it is null and its line goes to the quarantine."""
        starts = [*Lines().starts(text).tolist(), len(text)]
        values: dict[str, list[Any]] = {name: [] for name in self.columns.names}
        for record in range(len(starts) - 1):
            line = bytes(text[starts[record] : starts[record + 1]]).strip()
            found, bad = read_line(line, self.columns)
            for name, column in values.items():
                column.append(found.get(name))
            if bad is not None:
                self._complain(bad, line, file_index, first_row + record)
        return pa.RecordBatch.from_pydict(values, schema=self.columns)

    def _complain(self, bad: BadRecord, line: bytes, file_index: int, row: int) -> None:
        if self.quarantine is None:
            raise bad.error(self.paths[file_index], row)
        row_id = row_ids(file_index, row, 1)[0].as_py()
        content = line.decode(errors="replace")
        self.quarantine.put(row_id, bad.problem, column=bad.column, value=bad.value, row=content)


def _is_utf8(text: memoryview) -> bool:
    """Arrow does not look."""
    if np.frombuffer(text, np.uint8).max() < _END_OF_ASCII:
        return True
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _as(column: Any, value_type: Any) -> Any:
    """A column as it was read, as the type it is given out as."""
    if column.type == value_type:
        return column
    if not pa.types.is_map(value_type):
        return column.cast(value_type)
    pairs = column.values
    if pairs.null_count or pairs.field("key").null_count:
        raise pa.ArrowInvalid("a key of a map is null")
    return pa.Array.from_buffers(value_type, len(column), column.buffers()[:2], children=[pairs])
