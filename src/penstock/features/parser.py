"""Record batch -> columns of features, labels and weights, with every bad value located by file and row."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.features.arrow_input import cells_of
from penstock.features.fast_path import FastPath, PlainColumns, fast_path_of
from penstock.features.feature import (
    BadValue,
    BoolArray,
    Column,
    Feature,
    Float32Array,
    Int64Array,
    NumberArray,
    SparseColumn,
    row_of_value,
)
from penstock.features.text import Text
from penstock.readers.stream import ROW_COLUMN, file_and_row

NO_ROW_ID = -1
"""Row id of a row that came from no file."""

SideArray = NDArray[np.int8] | Int64Array


@dataclass(frozen=True, slots=True)
class ParsedBatch:
    """One batch as NumPy arrays, by name; views of the record batch's memory where possible."""

    features: dict[str, Column]
    labels: dict[str, NumberArray]
    sample_weights: dict[str, Float32Array]
    row_ids: Int64Array
    """Where each row came from (readers.stream); NO_ROW_ID throughout if the data carries no origin."""

    num_rows: int
    plain: PlainColumns | None = None
    """All features, already where a batch has them; then `features` is empty."""

    rejected: tuple["RejectedRow", ...] = ()
    """Rows that were left out because they cannot be used, where that is asked for."""

    kept: BoolArray | None = None
    """Which rows of the record batch are here, where some were left out."""

    side: dict[str, SideArray] = field(default_factory=dict)
    """Masks of classes and sessions, where a task needs them."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    row_id: int
    problem: str
    column: str | None
    value: Any
    content: dict[str, Any]
    """The row as it stands."""


@dataclass(eq=False)
class Parser:
    """Parses record batches with a run's features."""

    features: Sequence[Feature]
    label_fields: Sequence[str] = ()
    sample_weight_fields: Sequence[str] = ()
    file_paths: tuple[str, ...] = ()
    """The files that row ids count; without them errors name the row of the batch."""

    binary_labels: Collection[str] = ()
    """Those labels that a loss wants within 0 and 1: here a wrong one has a file and a row."""

    masks: Mapping[str, int] = field(default_factory=dict)
    """Mask column -> number of classes. Needed for predictions too."""

    sessions: Mapping[str, str] = field(default_factory=dict)
    """Name -> the column whose equal values make a session. Needed for the loss only."""

    columns: tuple[str, ...] = field(init=False)
    """All data columns that are read, each once."""

    text_columns: tuple[str, ...] = field(init=False)
    """The data columns whose values are hashed or looked up as they are written, each once.

    A reader that guesses types must leave these as text: as a number, 02134 would be another value. Labels
    and sample weights are numbers all the same.
    """

    fast_path: FastPath | None = field(init=False)

    def __post_init__(self) -> None:
        inputs = [name for feature in self.features for name in feature.inputs]
        numbers = [*self.label_fields, *self.sample_weight_fields]
        self.columns = tuple(dict.fromkeys([*inputs, *numbers, *self.masks, *self.sessions.values()]))
        texts = [name for feature in self.features if feature.reads_text for name in feature.inputs]
        self.text_columns = tuple(name for name in dict.fromkeys(texts) if name not in numbers)
        self.fast_path = fast_path_of(self.features)

    def parse(self, batch: pa.RecordBatch | pa.Table) -> ParsedBatch:
        """The columns of one batch; where all features are plain columns, they are in `plain`.

        A bad value is a DataError with file, row, column and value.
        """
        has_ids = ROW_COLUMN in batch.schema.names
        row_ids = batch[ROW_COLUMN].to_numpy() if has_ids else np.full(batch.num_rows, NO_ROW_ID, np.int64)
        plain = None
        if self.fast_path is not None and isinstance(batch, pa.RecordBatch):
            plain = self.fast_path.pack(batch)
        parsed = ParsedBatch({}, {}, {}, row_ids, batch.num_rows, plain)
        try:
            for feature in self.features if plain is None else ():
                column = parsed.features[feature.name] = feature.parse(batch)
                if isinstance(column, SparseColumn) and feature.table is not None and len(column.values):
                    last_row = feature.table.num_rows - 1
                    # Unsigned, negative ids are huge: one comparison finds them too.
                    ids = column.values.view(np.uint64)
                    if int(ids.max()) > last_row:
                        index = int(np.argmax(ids > last_row))
                        problem = f"is outside 0 to {last_row}, the ids of feature '{feature.name}'"
                        row = row_of_value(column.lengths, index)
                        raise BadValue(feature.inputs[0], row, int(column.values[index]), problem)
            for name in self.label_fields:
                parsed.labels[name] = read_label(batch, name, name in self.binary_labels)
            for name in self.sample_weight_fields:
                parsed.sample_weights[name] = read_sample_weight(batch, name)
            for name, session in self.sessions.items():
                parsed.side[name] = read_sessions(batch, session)
            for name, num_class in self.masks.items():
                parsed.side[name] = read_mask(batch, name, num_class)
        except BadValue as error:
            # What is wrong with a whole column is wrong in every file: the first one stands for all.
            error_row, file = error.row, next(iter(self.file_paths), None)
            if error_row is not None and has_ids and self.file_paths:
                file, error_row = file_and_row(row_ids[error_row], self.file_paths)
            raise DataError.at(
                error.problem, file=file, row=error_row, column=error.column, value=error.value
            ) from error
        return parsed

    def parse_usable(self, batch: pa.RecordBatch) -> ParsedBatch:
        """The same, without the rows that have a bad value: they are in `rejected`.

        What is wrong with a whole column is still an error. Each bad row costs parsing the others again; that there
        are few is what a limit on bad rows is for.
        """
        rejected: list[RejectedRow] = []
        kept = np.ones(batch.num_rows, np.bool_)
        while True:
            usable = batch.filter(pa.array(kept)) if rejected else batch
            try:
                parsed = self.parse(usable)
            except DataError as error:
                cause = error.__cause__
                if (
                    not isinstance(cause, BadValue)
                    or cause.row is None
                    or ROW_COLUMN not in usable.schema.names
                ):
                    raise
                content = usable.slice(cause.row, 1).to_pylist()[0]
                row_id = content.pop(ROW_COLUMN)
                rejected.append(RejectedRow(row_id, cause.problem, cause.column, cause.value, content))
                kept[np.flatnonzero(kept)[cause.row]] = False
            else:
                return replace(parsed, rejected=tuple(rejected), kept=kept if rejected else None)

    def warm(self, schema: pa.Schema) -> None:
        """Parse a batch of no rows, so that everything that loads or compiles at first use has done so.

        A column of a type that cannot be used, be it a feature's or a label's, is an error already here.
        """
        if self.fast_path is not None:
            self.fast_path.warm()
        self.parse(schema.empty_table())


def read_label(batch: pa.RecordBatch | pa.Table, column: str, binary: bool = False) -> NumberArray:
    """Integers and booleans as int64, other numbers as float32. A null or NaN is an error.

    `binary`: so is what lies outside 0 to 1.
    """
    values = _one_number_per_row(batch, column, "label")
    if binary and (wrong := (values < 0) | (values > 1)).any():
        raise _first(wrong, values, column, "is outside 0 to 1, the labels of a binary loss")
    if values.dtype == np.int64:
        return values
    if (wrong := np.isnan(values)).any():
        raise _first(wrong, values, column, "is no label; every row needs one")
    return values.astype(np.float32, copy=False)


def read_sample_weight(batch: pa.RecordBatch | pa.Table, column: str) -> Float32Array:
    weights = _one_number_per_row(batch, column, "sample weight").astype(np.float32, copy=False)
    if (wrong := ~(np.isfinite(weights) & (weights >= 0))).any():
        raise _first(wrong, weights, column, "is no sample weight: finite and >= 0")
    return weights


def _one_number_per_row(batch: pa.RecordBatch | pa.Table, column: str, role: str) -> NumberArray:
    kind = batch.schema.field(column).type
    if pa.types.is_nested(kind):
        raise BadValue(column, None, None, f"is a {kind}; a {role} that is a list is not available yet")
    cells = cells_of(batch.column(column), column)
    if isinstance(cells.values, Text):
        raise BadValue(column, None, None, f"is a {kind}; a {role} is a number")
    missing = cells.lengths == 0
    if missing.any():
        raise BadValue(column, int(np.argmax(missing)), None, f"is null; every row needs a {role}")
    return cells.values


def _first(wrong: BoolArray, values: NumberArray, column: str, problem: str) -> BadValue:
    row = int(np.argmax(wrong))
    return BadValue(column, row, values[row].item(), problem)


def read_mask(batch: pa.RecordBatch | pa.Table, column: str, num_class: int) -> NDArray[np.int8]:
    """A list of num_class zeros and ones in every row, with a 1 at least, as (rows, num_class)."""
    cells = cells_of(batch.column(column), column)
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
