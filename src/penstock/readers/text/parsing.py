"""What a format of text adds to the rest: how its records become columns, and what that takes."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.blocks import Int64Array

Counts = TypeVar("Counts", int, Int64Array)


@dataclass(frozen=True, slots=True)
class ParseCost:
    """What parsing takes at most, text and columns together."""

    per_text_byte: int
    per_record: int

    def of(self, text_bytes: Counts, num_records: Counts) -> Counts:
        """Bytes for one text, or for each of many."""
        return self.per_text_byte * text_bytes + self.per_record * num_records


@dataclass(frozen=True, slots=True)
class BadRecord:
    """What is wrong with one record of a text."""

    problem: str
    record: int | None = None
    """Counted from 0 in the text."""
    column: str | None = None
    """None: nothing of the record can be read."""
    value: object = None

    def error(self, path: str, first_row: int) -> DataError:
        """With the row counted from the start of the file."""
        row = None if self.record is None else first_row + self.record
        return DataError.at(self.problem, file=path, row=row, column=self.column, value=self.value)


class RecordParser(Protocol):
    """Turns records into columns."""

    @property
    def columns(self) -> pa.Schema:
        """Of every batch."""
        ...

    @property
    def cost(self) -> ParseCost:
        """What `parse` takes."""
        ...

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        """So many records of a file; `first_row` is the row of the first of them in the file."""
        ...


def all_null(columns: pa.Schema) -> pa.RecordBatch:
    """The row of a record of which nothing can be read."""
    return pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in columns], schema=columns)
