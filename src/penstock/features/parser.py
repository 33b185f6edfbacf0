"""Record batch -> columns of features, labels and weights, with every bad value located by file and row."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.features.arrow_values import read_values
from penstock.features.encoding import IdEncoding
from penstock.features.fast_path import FastPath, PlainColumns, fast_path_of
from penstock.features.feature import Feature
from penstock.features.graph import FeatureGraph
from penstock.features.masking import Masking
from penstock.features.value_counts import NUMBER, STRING, ValueCounts, kind_of, may_differ
from penstock.features.values import (
    BadValue,
    BoolArray,
    Column,
    DenseColumn,
    Float32Array,
    Int32Array,
    Int64Array,
    NumberArray,
    SparseColumn,
    Strings,
    row_of_value,
)
from penstock.readers.stream import ROW_COLUMN, file_and_row

NO_ROW_ID = -1
"""Row id of a row that came from no file."""

_NOT_BINARY = (
    "is outside 0 to 1, the labels of a binary loss; "
    "say what it means in data_config.label_map, or take another loss"
)

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
    """Features that are plain columns, already where a batch has them; `features` are the others."""

    rejected: tuple["RejectedRow", ...] = ()
    """Rows that were left out because they cannot be used, where that is asked for."""

    kept: BoolArray | None = None
    """Which rows of the record batch are here, where some were left out."""

    jagged_labels: dict[str, tuple[NumberArray, Int32Array]] = field(default_factory=dict)
    """Labels that are lists: the values of all rows, and how many each row has."""

    side: dict[str, SideArray] = field(default_factory=dict)
    """Masks of classes and sessions, where a task needs them."""

    counts: dict[str, ValueCounts] = field(default_factory=dict)
    """By feature, where the parser counts."""


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

    single_labels: Collection[str] = ()
    """Those labels that a loss or metric reads as one number in each row; others may be lists."""

    masks: Mapping[str, int] = field(default_factory=dict)
    """Mask column -> number of classes. Needed for predictions too."""

    sessions: Mapping[str, str] = field(default_factory=dict)
    """Name -> the column whose equal values make a session. Needed for the loss only."""

    label_map: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Label -> what its values mean, where they are no numbers, or other ones."""

    counts_values: bool = False
    """Count values that a feature does not know; an id that its table does not have is then left out, and no error."""

    trained_kinds: Mapping[str, str] = field(default_factory=dict)
    """The kinds that columns had in training (features.value_counts): where ids depend on them, others are refused."""

    num_threads: int = 1
    """That make features, where there are several."""

    masking: Masking | None = None
    """What is hidden of features with use_mask; None: nothing."""

    columns: tuple[str, ...] = field(init=False)
    """All data columns that are read, each once."""

    text_columns: tuple[str, ...] = field(init=False)
    """The data columns whose values are hashed or looked up as they are written, each once.

    A reader that guesses types must leave these as text: as a number, 02134 would be another value. Labels
    without a map and sample weights are numbers all the same.
    """

    fast_path: FastPath | None = field(init=False)
    graph: FeatureGraph = field(init=False)

    def __post_init__(self) -> None:
        inputs = [name for feature in self.features for name in feature.inputs]
        mapped = [name for name in self.label_fields if name in self.label_map]
        numbers = [*self.label_fields, *self.sample_weight_fields]
        self.columns = tuple(dict.fromkeys([*inputs, *numbers, *self.masks, *self.sessions.values()]))
        numbers = [name for name in numbers if name not in mapped]
        texts = [name for feature in self.features if feature.reads_text for name in feature.inputs] + mapped
        self.text_columns = tuple(name for name in dict.fromkeys(texts) if name not in numbers)
        fed = {
            source.name for feature in self.features for source in feature.sources if source.side == "feature"
        }
        # What is hidden in training alone must stand where it stands elsewhere.
        apart = {*fed, *(feature.name for feature in self.features if feature.use_mask)}
        self.fast_path = fast_path_of([feature for feature in self.features if feature.name not in apart])
        # In every batch features stand in one order: a sharded collection remembers that of its first.
        fast = () if self.fast_path is None else self.fast_path.names
        ordered = sorted(self.features, key=lambda feature: feature.name not in fast)
        self.graph = FeatureGraph(ordered, self.num_threads)
        self._unseen_kinds = {
            name: self.trained_kinds[name] for name in self.text_columns if name in self.trained_kinds
        }

    def parse(self, batch: pa.RecordBatch | pa.Table) -> ParsedBatch:
        """The columns of one batch; features that are plain columns are in `plain`.

        A bad value is a DataError with file, row, column and value.
        """
        has_ids = ROW_COLUMN in batch.schema.names
        row_ids = batch[ROW_COLUMN].to_numpy() if has_ids else np.full(batch.num_rows, NO_ROW_ID, np.int64)
        parsed = ParsedBatch({}, {}, {}, row_ids, batch.num_rows)
        try:
            if self._unseen_kinds:
                self._require_kinds(batch)
            parsed = replace(parsed, plain=self._parse_features(batch, parsed))
            for name in self.label_fields:
                if name not in self.single_labels and pa.types.is_nested(batch.schema.field(name).type):
                    parsed.jagged_labels[name] = read_jagged_label(batch, name)
                    continue
                parsed.labels[name] = read_label(
                    batch, name, name in self.binary_labels, self.label_map.get(name)
                )
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

    def _parse_features(self, batch: pa.RecordBatch | pa.Table, parsed: ParsedBatch) -> PlainColumns | None:
        """Fill in the features; gives those that are plain columns, behind which there is space for the others."""
        counts = parsed.counts if self.counts_values else None
        path = self.fast_path
        taken: Collection[str] = () if path is None or isinstance(batch, pa.Table) else path.names
        self._make(batch, [name for name in self.graph.features if name not in taken], parsed, counts)
        if path is None or isinstance(batch, pa.Table):
            return None
        num_ids = num_numbers = 0
        for column in parsed.features.values():
            if isinstance(column, DenseColumn):
                num_numbers += column.values.shape[1] if column.steps is None else 0
            elif column.weights is None:
                num_ids += len(column.values)
        plain = path.pack(batch, num_ids, num_numbers)
        if plain is None:
            others = dict(parsed.features)
            parsed.features.clear()
            self._make(batch, taken, parsed, counts)
            parsed.features.update(others)
            return None
        for name in plain.id_names if counts is not None else ():
            encoding = self.graph.features[name].encoding
            assert isinstance(encoding, IdEncoding)
            # One id in every row, and each in its table.
            parsed.counts[name] = ValueCounts(batch.num_rows, 0, batch.num_rows, 0, encoding.outside)
        return plain

    def _make(
        self,
        batch: pa.RecordBatch | pa.Table,
        names: Collection[str],
        parsed: ParsedBatch,
        counts: dict[str, ValueCounts] | None,
    ) -> None:
        hidden = None
        if self.masking is not None:
            hidden = {
                feature.name: self.masking.hidden_rows(feature.name, parsed.row_ids)
                for feature in self.features
                if feature.use_mask
            }
        for name, column in self.graph.columns(batch, names, counts, hidden).items() if names else ():
            feature = self.graph.features[name]
            if feature.is_stub:
                continue
            parsed.features[name] = column
            if isinstance(column, SparseColumn) and feature.table is not None:
                check_range(feature, column)
                if feature.table.weighted:
                    parsed.features[name] = with_weights(column, is_mean=feature.table.pooling == "mean")

    def _require_kinds(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Refuse strings where training had numbers, or the other way round: they would have other ids.

        Each column is looked at once, in the first batch that has a value of it.
        """
        for feature in self.features:
            for name in feature.inputs if feature.reads_text else ():
                found = kind_in(batch, name, feature) if name in self._unseen_kinds else None
                if found is None:
                    continue
                (present, value), trained = found, self._unseen_kinds[name]
                if not may_differ(trained, present):
                    del self._unseen_kinds[name]
                    continue
                cure = f"cast the column to {trained}s"
                if trained in (STRING, NUMBER):
                    number = "DOUBLE" if str(value).endswith(".0") else "INT64"
                    declared = "STRING" if trained == STRING else number
                    cure += (
                        ", or where files say no types (CSV, JSON), set data_config.input_fields: "
                        f"[{{input_name: {name}, input_type: {declared}}}]"
                    )
                problem = f"is a {present}, but the model was trained on {trained}s here, which have other ids; {cure}"
                raise BadValue(name, None, value, problem)

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


def check_range(feature: Feature, column: SparseColumn) -> None:
    """Refuse an id that is not a row of the feature's table. Tables that grow have keys instead."""
    table = feature.table
    if table is None or table.growing or not len(column.values):
        return
    # Unsigned, negative ids are huge: one comparison finds them too.
    ids, last_row = column.values.view(np.uint64), table.num_rows - 1
    if int(ids.max()) > last_row:
        index = int(np.argmax(ids > last_row))
        problem = f"is outside 0 to {last_row}, the ids of feature '{feature.name}'"
        row = row_of_value(column.lengths, index)
        if column.steps is not None:
            row = row_of_value(column.steps, row)
        source = next(iter(feature.inputs), feature.name)
        raise BadValue(source, row, int(column.values[index]), problem)


def with_weights(column: SparseColumn, is_mean: bool) -> SparseColumn:
    """Ids of a weighted table: those without weights weigh 1. Of a mean, weights are parts of their row's sum."""
    weights = np.ones(len(column.values), np.float32) if column.weights is None else column.weights
    if is_mean:
        rows = np.repeat(np.arange(len(column.lengths)), column.lengths)
        sums = np.bincount(rows, weights, len(column.lengths))[rows]
        weights = np.divide(weights, sums, out=np.zeros(len(weights)), where=sums != 0).astype(np.float32)
    return replace(column, weights=weights)


def kind_in(batch: pa.RecordBatch | pa.Table, column: str, feature: Feature) -> tuple[str, object] | None:
    """The kind of the values that a feature finds in a column, and one of them; None where there are none."""
    weighted = feature.table is not None and feature.table.weighted
    return kind_of(batch.column(column), feature.separators, weighted)


def read_label(
    batch: pa.RecordBatch | pa.Table,
    column: str,
    binary: bool = False,
    meanings: Mapping[str, float] | None = None,
) -> NumberArray:
    """Integers and booleans as int64, other numbers as float32. A null or NaN is an error.

    `binary`: so is what lies outside 0 to 1. With `meanings`, what the values mean counts, and so is a value without.
    """
    if meanings is None:
        values = _one_number_per_row(batch, column, "label")
    else:
        values = _mapped_labels(batch, column, meanings)
    if binary and (wrong := (values < 0) | (values > 1)).any():
        raise _first(wrong, values, column, _NOT_BINARY)
    if values.dtype == np.int64:
        return values
    if (wrong := np.isnan(values)).any():
        raise _first(wrong, values, column, "is no label; every row needs one")
    return values.astype(np.float32, copy=False)


def read_jagged_label(batch: pa.RecordBatch | pa.Table, column: str) -> tuple[NumberArray, Int32Array]:
    """The numbers of all lists, and how many each row has: none where it is null. Types as those of other labels."""
    cells = read_values(batch.column(column), column)
    values = cells.items
    if isinstance(values, Strings) or cells.weights is not None:
        raise BadValue(column, None, None, f"is a {batch.schema.field(column).type}; a label is of numbers")
    if values.dtype != np.int64:
        if (wrong := np.isnan(values)).any():
            raise BadValue(
                column, row_of_value(cells.lengths, int(np.argmax(wrong))), None, "has NaN as a label"
            )
        values = values.astype(np.float32, copy=False)
    return values, cells.lengths


def _mapped_labels(
    batch: pa.RecordBatch | pa.Table, column: str, meanings: Mapping[str, float]
) -> NumberArray:
    array: Any = batch.column(column)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    kind = array.type
    if pa.types.is_nested(kind):
        raise BadValue(column, None, None, f"is a {kind}; data_config.label_map is for single values")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        try:
            known = pa.array([float(value) for value in meanings], pa.float64())
        except ValueError:
            words = next(value for value in meanings if not _is_number(value))
            problem = f"is a {kind}, but data_config.label_map.{column} has '{words}'"
            raise BadValue(column, None, None, problem) from None
        found = pc.index_in(pc.cast(array, pa.float64()), value_set=known)
    else:
        found = pc.index_in(pc.cast(array, pa.string()), value_set=pa.array(list(meanings), pa.string()))
    if found.null_count:
        row = int(np.argmax(found.is_null().to_numpy(zero_copy_only=False)))
        value, known_values = array[row].as_py(), ", ".join(meanings)
        if value is None:
            raise BadValue(column, row, None, "is null; every row needs a label")
        raise BadValue(column, row, value, f"is not in data_config.label_map.{column} ({known_values})")
    numbers = np.array(list(meanings.values()), np.float64)
    if (numbers == np.rint(numbers)).all():
        numbers = numbers.astype(np.int64)
    return np.asarray(numbers[found.to_numpy()])


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def read_sample_weight(batch: pa.RecordBatch | pa.Table, column: str) -> Float32Array:
    weights = _one_number_per_row(batch, column, "sample weight").astype(np.float32, copy=False)
    if (wrong := ~(np.isfinite(weights) & (weights >= 0))).any():
        raise _first(wrong, weights, column, "is no sample weight: finite and >= 0")
    return weights


def _one_number_per_row(batch: pa.RecordBatch | pa.Table, column: str, role: str) -> NumberArray:
    kind = batch.schema.field(column).type
    if pa.types.is_nested(kind):
        raise BadValue(column, None, None, f"is a {kind}; this {role} is one number in each row")
    cells = read_values(batch.column(column), column)
    if isinstance(cells.items, Strings):
        raise BadValue(column, None, None, f"is a {kind}; a {role} is a number")
    missing = cells.lengths == 0
    if missing.any():
        raise BadValue(column, int(np.argmax(missing)), None, f"is null; every row needs a {role}")
    return cells.items


def _first(wrong: BoolArray, values: NumberArray, column: str, problem: str) -> BadValue:
    row = int(np.argmax(wrong))
    return BadValue(column, row, values[row].item(), problem)


def read_mask(batch: pa.RecordBatch | pa.Table, column: str, num_class: int) -> NDArray[np.int8]:
    """A list of num_class zeros and ones in every row, with a 1 at least, as (rows, num_class)."""
    cells = read_values(batch.column(column), column)
    if isinstance(cells.items, Strings):
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
    wrong_values = np.flatnonzero((cells.items != 0) & (cells.items != 1))
    if len(wrong_values):
        index = int(wrong_values[0])
        row = row_of_value(cells.lengths, index)
        raise BadValue(column, row, cells.items[index].item(), "is no mask: zeros and ones")
    mask = cells.items.astype(np.int8).reshape(-1, num_class)
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
