"""Record batch -> columns of features, labels and weights, with every bad value located by file and row."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
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
from penstock.features.task_columns import SideArray, SideColumns, read_label, read_sample_weight
from penstock.readers.stream import ROW_COLUMN, file_and_row

UNKNOWN_ROW = -1
"""Row id of a row that came from no file."""


@dataclass(frozen=True, slots=True)
class ParsedBatch:
    """One batch as NumPy arrays, by name; views of the record batch's memory where possible."""

    features: dict[str, Column]
    labels: dict[str, NumberArray]
    sample_weights: dict[str, Float32Array]
    row_ids: Int64Array
    """Where each row came from (readers.stream); UNKNOWN_ROW throughout if the data carries no origin."""

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


class Parser:
    """Parses record batches with a run's features.

    `file_paths` are the files that row ids count; without them errors name the row of the batch.
    `binary_labels` are those labels that a loss wants within 0 and 1: here a wrong one has a file and a row.
    `side` are columns that only tasks need.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        label_fields: Sequence[str] = (),
        sample_weight_fields: Sequence[str] = (),
        file_paths: Sequence[str] = (),
        binary_labels: Sequence[str] = (),
        side: SideColumns | None = None,
    ) -> None:
        self.features = tuple(features)
        self.label_fields = tuple(label_fields)
        self.sample_weight_fields = tuple(sample_weight_fields)
        self.file_paths = tuple(file_paths)
        self.binary_labels = frozenset(binary_labels)
        self.side = side or SideColumns()

    def of_files(self, file_paths: Sequence[str]) -> "Parser":
        parser = copy(self)
        parser.file_paths = tuple(file_paths)
        return parser

    @property
    def feature_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for feature in self.features for name in feature.inputs))

    @property
    def columns(self) -> tuple[str, ...]:
        of_tasks = [*self.label_fields, *self.sample_weight_fields, *self.side.columns()]
        return tuple(dict.fromkeys([*self.feature_columns, *of_tasks]))

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The data columns whose values are hashed or looked up as they are written, each once.

        A reader that guesses types must leave these as text: as a number, 02134 would be another value. Labels
        and sample weights are numbers all the same.
        """
        numbers = {*self.label_fields, *self.sample_weight_fields}
        texts = [name for feature in self.features if feature.reads_text for name in feature.inputs]
        return tuple(name for name in dict.fromkeys(texts) if name not in numbers)

    def parse_fast(self, batch: pa.RecordBatch, with_labels: bool = True) -> ParsedBatch:
        """The same as `parse`, with features in `plain` where they are plain columns, and in `features` elsewhere."""
        plain = None if self._fast_path is None else self._fast_path.pack(batch)
        return self.parse(batch, with_labels, plain)

    def parse(
        self,
        batch: pa.RecordBatch | pa.Table,
        with_labels: bool = True,
        plain: PlainColumns | None = None,
    ) -> ParsedBatch:
        """The columns of one batch; features are not parsed that are in `plain` already.

        A bad value is a DataError with file, row, column and value.
        """
        row_ids = _row_ids(batch)
        labels: dict[str, NumberArray] = {}
        weights: dict[str, Float32Array] = {}
        try:
            parsed = self.features if plain is None else ()
            features = {feature.name: _checked_column(feature, batch) for feature in parsed}
            if with_labels:
                labels = {
                    name: read_label(batch, name, name in self.binary_labels) for name in self.label_fields
                }
                weights = {name: read_sample_weight(batch, name) for name in self.sample_weight_fields}
            side = dict(self.side.read(batch, with_labels))
        except BadValue as error:
            raise self._located(error, row_ids) from error
        return ParsedBatch(features, labels, weights, row_ids, batch.num_rows, plain, side=side)

    @cached_property
    def _fast_path(self) -> FastPath | None:
        return fast_path_of(self.features)

    def parse_usable(self, batch: pa.RecordBatch, with_labels: bool = True) -> ParsedBatch:
        """The same, without the rows that have a bad value: they are in `rejected`.

        What is wrong with a whole column is still an error. Each bad row costs parsing the others again; that there
        are few is what a limit on bad rows is for.
        """
        rejected: list[RejectedRow] = []
        kept = np.ones(batch.num_rows, np.bool_)
        while True:
            usable = batch.filter(pa.array(kept)) if rejected else batch
            try:
                parsed = self.parse(usable, with_labels)
            except DataError as error:
                cause, row_ids = error.__cause__, _row_ids(usable)
                if not isinstance(cause, BadValue) or cause.row is None or row_ids[cause.row] == UNKNOWN_ROW:
                    raise
                content = usable.slice(cause.row, 1).to_pylist()[0]
                content.pop(ROW_COLUMN)
                row_id = int(row_ids[cause.row])
                rejected.append(RejectedRow(row_id, cause.problem, cause.column, cause.value, content))
                kept[np.flatnonzero(kept)[cause.row]] = False
            else:
                return replace(parsed, rejected=tuple(rejected), kept=kept if rejected else None)

    def warm(self, schema: pa.Schema) -> None:
        """Parse a batch of no rows, so that everything that loads or compiles at first use has done so.

        A column of a type that cannot be used, be it a feature's or a label's, is an error already here.
        """
        if self._fast_path is not None:
            self._fast_path.warm()
        self.parse(schema.empty_table())

    def _located(self, error: BadValue, row_ids: Int64Array) -> DataError:
        """The same error, with the file and the row in that file where they are known."""
        # What is wrong with a whole column is wrong in every file: the first one stands for all.
        row, file = error.row, next(iter(self.file_paths), None)
        if row is not None and row_ids[row] != UNKNOWN_ROW and self.file_paths:
            file, row = file_and_row(row_ids[row], self.file_paths)
        return DataError.at(error.problem, file=file, row=row, column=error.column, value=error.value)


def _row_ids(batch: pa.RecordBatch | pa.Table) -> Int64Array:
    if ROW_COLUMN not in batch.schema.names:
        return np.full(batch.num_rows, UNKNOWN_ROW, np.int64)
    ids = batch.column(ROW_COLUMN)
    return ids.to_numpy() if isinstance(ids, pa.ChunkedArray) else ids.to_numpy(zero_copy_only=True)


def _checked_column(feature: Feature, batch: pa.RecordBatch | pa.Table) -> Column:
    """What a feature makes of a batch; ids must be rows of the table."""
    column = feature.parse(batch)
    if isinstance(column, SparseColumn) and feature.table is not None and len(column.values):
        last_row = feature.table.num_rows - 1
        # Unsigned, negative ids are huge: one comparison finds them too.
        ids = column.values.view(np.uint64)
        if int(ids.max()) > last_row:
            index = int(np.argmax(ids > last_row))
            problem = f"is outside 0 to {last_row}, the ids of feature '{feature.name}'"
            row = row_of_value(column.lengths, index)
            raise BadValue(feature.inputs[0], row, int(column.values[index]), problem)
    return column
