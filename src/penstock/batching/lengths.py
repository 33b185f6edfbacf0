"""How many steps the sequences of a column have, row by row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.readers.blocks import Int64Array
from penstock.readers.columns import is_list
from penstock.readers.origin import ROW_COLUMN

ArrowArray = Any
"""pa.Array: its type stubs know fewer methods than the classes have."""


@dataclass(frozen=True, slots=True)
class SequenceLength:
    """The length of one column's sequences: elements of a list, or steps of a text.

    A row without a value has no steps. `longest` is where the feature cuts its sequences: steps past it cost
    nothing.
    """

    column: str
    separator: str = ";"
    """Between the steps, where the column is text."""
    longest: int | None = None

    def check(self, schema: pa.Schema) -> None:
        """Refuse a column that is not there, or that has no length."""
        kind = column_type(schema, self.column)
        if not _has_length(kind):
            raise DataError.at(
                f"is of type {kind}; only lists and texts of several steps have a length", column=self.column
            )

    def of(self, batch: pa.RecordBatch) -> Int64Array:
        """The length of each row."""
        lengths = _lengths(batch.column(self.column), self.separator)
        return lengths if self.longest is None else np.minimum(lengths, self.longest)


def column_type(schema: pa.Schema, column: str) -> pa.DataType:
    """The type of a column; an unknown one is an error with the nearest name."""
    index = schema.get_field_index(column)
    if index < 0:
        known = [name for name in schema.names if name != ROW_COLUMN]
        raise DataError(f"there is no column '{column}'; {hint(column, known)}")
    kind: pa.DataType = schema.field(index).type
    return kind


def _has_length(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        return _has_length(kind.value_type)
    return is_list(kind) or _is_text(kind) or pt.is_map(kind)


def _lengths(array: ArrowArray, separator: str) -> Int64Array:
    if pt.is_dictionary(array.type):
        of_words = pa.array(_lengths(array.dictionary, separator))
        lengths: ArrowArray = of_words.take(array.indices)
    elif _is_text(array.type):
        lengths = _steps(array, separator)
    elif pt.is_map(array.type):
        entry = pa.struct([array.type.key_field.with_nullable(False), array.type.item_field])
        entries: ArrowArray = pc.cast(array, pa.list_(entry))
        lengths = pc.list_value_length(entries)
    else:
        lengths = pc.list_value_length(array)
    if lengths.null_count:
        lengths = lengths.fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _steps(texts: ArrowArray, separator: str) -> ArrowArray:
    """Steps of each text: one more than it has separators; an empty text has none."""
    if pt.is_string_view(texts.type) or pt.is_binary_view(texts.type):
        texts = pc.cast(texts, pa.large_binary())
    num_bytes: ArrowArray = pc.binary_length(texts)
    has_steps: ArrowArray = pc.cast(pc.greater(num_bytes, pa.scalar(0, num_bytes.type)), pa.int64())
    if not separator:
        return has_steps
    num_separators: ArrowArray = pc.count_substring(texts, separator)
    return pc.add(has_steps, num_separators)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_string_view(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
    )
