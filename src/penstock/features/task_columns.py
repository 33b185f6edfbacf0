"""What a task needs beside features: labels, sample weights, masks of classes, and the sessions of rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.features.arrow_input import read_cells
from penstock.features.feature import BadValue, BoolArray, Float32Array, Int64Array, NumberArray, row_of_value
from penstock.features.text import Text


def read_label(batch: pa.RecordBatch | pa.Table, column: str, binary: bool = False) -> NumberArray:
    """Integers and booleans as int64, other numbers as float32. A null or NaN is an error.

    `binary`: so is what lies outside 0 to 1.
    """
    values = _one_number_per_row(batch, column, "label")
    if binary:
        _refuse((values < 0) | (values > 1), values, column, "is outside 0 to 1, the labels of a binary loss")
    if values.dtype == np.int64:
        return values
    _refuse(np.isnan(values), values, column, "is no label; every row needs one")
    return values.astype(np.float32, copy=False)


def read_sample_weight(batch: pa.RecordBatch | pa.Table, column: str) -> Float32Array:
    weights = _one_number_per_row(batch, column, "sample weight").astype(np.float32, copy=False)
    _refuse(~(np.isfinite(weights) & (weights >= 0)), weights, column, "is no sample weight: finite and >= 0")
    return weights


def _one_number_per_row(batch: pa.RecordBatch | pa.Table, column: str, role: str) -> NumberArray:
    kind = batch.schema.field(column).type
    if pa.types.is_nested(kind):
        raise BadValue(column, None, None, f"is a {kind}; a {role} that is a list is not available yet")
    cells = read_cells(batch, column)
    if isinstance(cells.values, Text):
        raise BadValue(column, None, None, f"is a {kind}; a {role} is a number")
    missing = cells.lengths == 0
    if missing.any():
        raise BadValue(column, int(np.argmax(missing)), None, f"is null; every row needs a {role}")
    return cells.values


def _refuse(wrong: BoolArray, values: NumberArray, column: str, problem: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadValue(column, row, values[row].item(), problem)


SideArray = NDArray[np.int8] | Int64Array


@dataclass(frozen=True, slots=True)
class SideColumns:
    masks: Mapping[str, int] = field(default_factory=dict)
    """Mask column -> number of classes. Needed for predictions too."""

    sessions: Mapping[str, str] = field(default_factory=dict)
    """Name -> the column whose equal values make a session. Needed for the loss only."""

    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.masks, *self.sessions.values()]))

    def read(
        self, batch: pa.RecordBatch | pa.Table, with_labels: bool = True
    ) -> Iterator[tuple[str, SideArray]]:
        for name, num_class in self.masks.items():
            yield name, read_mask(batch, name, num_class)
        for name, column in self.sessions.items():
            if with_labels:
                yield name, read_sessions(batch, column)


def read_mask(batch: pa.RecordBatch | pa.Table, column: str, num_class: int) -> NDArray[np.int8]:
    """A list of num_class zeros and ones in every row, with a 1 at least, as (rows, num_class)."""
    cells = read_cells(batch, column)
    if isinstance(cells.values, Text):
        raise BadValue(column, None, None, "is text; a mask is a list of zeros and ones")
    wrong_rows = np.flatnonzero(cells.lengths != num_class)
    if len(wrong_rows):
        row = int(wrong_rows[0])
        raise BadValue(
            column,
            row,
            None,
            f"has {cells.lengths[row]} values; a mask has one for each of {num_class} classes",
        )
    wrong_values = np.flatnonzero((cells.values != 0) & (cells.values != 1))
    if len(wrong_values):
        index = int(wrong_values[0])
        row = row_of_value(cells.lengths, index)
        raise BadValue(column, row, cells.values[index].item(), "is no mask: zeros and ones")
    mask = cells.values.astype(np.int8).reshape(-1, num_class)
    empty_rows = np.flatnonzero(~mask.any(axis=1))
    if len(empty_rows):
        raise BadValue(column, int(empty_rows[0]), None, "masks every class; leave one at least")
    return mask


def read_sessions(batch: pa.RecordBatch | pa.Table, column: str) -> Int64Array:
    """A number for each row, the same for equal values; a row without a value is a session of its own."""
    values: Any = batch.column(column)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_nested(values.type):
        raise BadValue(column, None, None, f"is a {values.type}; a session is one value")
    if not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    codes: NDArray[Any] = values.indices.to_numpy(zero_copy_only=False)
    if not values.null_count:
        return codes.astype(np.int64)
    own_sessions = np.arange(len(values), dtype=np.int64) + len(values.dictionary)
    return np.where(np.isnan(codes), own_sessions, np.nan_to_num(codes)).astype(np.int64)
