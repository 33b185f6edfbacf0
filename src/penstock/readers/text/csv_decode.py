"""Records of CSV -> columns, with Arrow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How one CSV file is laid out."""

    path: str
    names: tuple[str, ...]
    """All columns, in the order of the file."""
    data_start: int
    """The byte at which the first row begins."""
    delimiter: str


def decode(text: memoryview, form: CsvForm, columns: pa.Schema) -> pa.RecordBatch:
    """The wanted columns of at least one record; ArrowInvalid says which record cannot be read."""
    types = dict(zip(columns.names, columns.types, strict=True))
    table = _parse(text, form, {"column_types": types, "include_columns": columns.names})
    return table.combine_chunks().to_batches()[0]


def decode_sample(
    text: bytes, form: CsvForm, names: Sequence[str], as_type: pa.DataType | None = None
) -> pa.Table:
    """Some records, with types found from their values; one with another number of cells is left out."""
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
