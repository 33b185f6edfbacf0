"""What a format of text adds to the rest: how its records become columns, and what that takes."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

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
