"""raw_feature: numbers or vectors of numbers; with boundaries, ids of the intervals they fall in."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.features.arrow_input import read_cells
from penstock.features.feature import (
    BadValue,
    DenseColumn,
    Feature,
    FeatureInput,
    Float64Array,
    Int32Array,
    NumberArray,
    SparseColumn,
    TableSpec,
    feature_input,
    one_per_row,
    row_of_value,
    spread_default,
    sum_by_row,
)
from penstock.features.id_encoding import GivenRows
from penstock.features.id_feature import SparseIds, checked, table_of
from penstock.features.normalizer import Normalizer, parse_normalizer
from penstock.features.sections import ParsingSection
from penstock.features.sections.types import RawFeature, table_rows
from penstock.features.text import BadToken, Text, parse_numbers


@dataclass(frozen=True, slots=True)
class Numbers:
    """Reads numbers from one column: float32 columns as they are, everything else as float64."""

    source: FeatureInput
    default: Float64Array
    normalizer: Normalizer | None = None

    def read(self, batch: pa.RecordBatch | pa.Table) -> tuple[NumberArray, Int32Array]:
        """All numbers, and how many each row has; missing ones replaced by the default, then normalised."""
        # One number may stand for a null of a column of floating numbers.
        null = float(self.default[0]) if len(self.default) == 1 else None
        cells = read_cells(batch, self.source.column, null)
        if cells.weights is not None:
            raise BadValue(self.source.column, None, None, "is a map, which cannot be a raw_feature")
        values, lengths = cells.values, cells.lengths
        if isinstance(values, Text):
            values, lengths = self._parse(values, lengths, cells.joined)
        elif values.dtype == np.int64:
            values = values.astype(np.float64)
        if not np.isfinite(values).all():
            values, lengths = self._without_nan(values, lengths)
        if len(self.default) and lengths is not one_per_row(len(values)) and (missing := lengths == 0).any():
            lengths = np.where(missing, np.int32(len(self.default)), lengths).astype(np.int32)
            values = spread_default(values, lengths, missing, self.default)
        if self.normalizer is not None:
            values = self.normalizer(values.astype(np.float64))
        return values, lengths

    def _parse(self, text: Text, lengths: Int32Array, joined: bool) -> tuple[NumberArray, Int32Array]:
        try:
            values, counts = parse_numbers(text, self.source.separator if joined else b"")
        except BadToken as error:
            row = row_of_value(lengths, error.text_index)
            raise BadValue(self.source.column, row, error.token, error.problem) from error
        return values, counts if joined else sum_by_row(counts, lengths)

    def _without_nan(self, values: NumberArray, lengths: Int32Array) -> tuple[NumberArray, Int32Array]:
        """A row that is NaN alone is missing, as if it were null; among other numbers NaN is an error."""
        is_nan = np.isnan(values)
        in_vector = is_nan & (np.repeat(lengths, lengths) > 1)
        if in_vector.any():
            row = row_of_value(lengths, int(np.argmax(in_vector)))
            raise BadValue(self.source.column, row, None, "has NaN among its values")
        return values[~is_nan], sum_by_row(~is_nan, lengths)


@dataclass(frozen=True, slots=True)
class DenseNumbers:
    name: str
    width: int
    numbers: Numbers
    table: None = None
    reads_text: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.numbers.source.column,)

    def parse(self, batch: pa.RecordBatch | pa.Table) -> DenseColumn:
        values, lengths = self.numbers.read(batch)
        one_each = self.width == 1 and lengths is one_per_row(len(values))
        if not one_each and (len(values) != self.width * len(lengths) or not (lengths == self.width).all()):
            row = int(np.argmax(lengths != self.width))
            expected = f"{self.width} {'value' if self.width == 1 else 'values'}"
            problem = f"expected {expected} (value_dim), found {lengths[row]}"
            if not lengths[row]:
                problem += f": it is missing and {self.numbers.source.default_option} is not set"
            raise BadValue(self.inputs[0], row, None, problem)
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float32, copy=False).reshape(-1, self.width)
        finite = np.isfinite(numbers)
        if not finite.all():
            row, index = np.argwhere(~finite)[0]
            value = float(values[row * self.width + index])
            made = "" if self.numbers.normalizer is None else ", as the normalizer made it"
            raise BadValue(self.inputs[0], int(row), value, f"is not a finite float32{made}")
        return DenseColumn(numbers)


@dataclass(frozen=True, slots=True)
class BucketizedNumbers:
    """Ids of intervals: the id of x is the number of boundaries that are <= x.

    Boundaries 1, 2: below 1 is 0; from 1 to below 2 is 1; from 2 on is 2.
    """

    name: str
    table: TableSpec
    numbers: Numbers
    boundaries: Float64Array
    width: int = 0
    reads_text: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.numbers.source.column,)

    def parse(self, batch: pa.RecordBatch | pa.Table) -> SparseColumn:
        """The intervals of every row's numbers. float32 columns meet boundaries rounded to float32."""
        values, lengths = self.numbers.read(batch)
        boundaries = self.boundaries.astype(values.dtype)
        return SparseColumn(np.searchsorted(boundaries, values, side="right").astype(np.int64), lengths)


def build_raw_feature(config: RawFeature, parsing: ParsingSection) -> Feature:
    source = feature_input(config, parsing)
    num_rows = table_rows(config)
    if num_rows is None or config.embedding_dim is None:
        return DenseNumbers(config.feature_name, config.value_dim, _numbers(config, source))
    table = table_of(config, num_rows, config.embedding_dim)
    if source.encoded:
        return checked(SparseIds(config.feature_name, table, source, GivenRows(table.num_rows)))
    boundaries = np.array(config.boundaries, np.float64)
    return BucketizedNumbers(config.feature_name, table, _numbers(config, source), boundaries)


def _numbers(config: RawFeature, source: FeatureInput) -> Numbers:
    normalizer = parse_normalizer(config.normalizer) if config.normalizer and not source.encoded else None
    if source.default is None:
        return Numbers(source, np.empty(0), normalizer)
    separator, width = source.separator.decode(), config.value_dim
    tokens = source.default.split(separator) if separator else [source.default]
    try:
        default = np.array([float(token) for token in tokens])
    except ValueError as error:
        raise ConfigError.at(source.default_option, f"'{source.default}' is not a number") from error
    if len(default) not in (1, width):
        raise ConfigError.at(source.default_option, f"has {len(default)} numbers; value_dim is {width}")
    return Numbers(source, np.resize(default, width), normalizer)  # one number stands for each of a vector
