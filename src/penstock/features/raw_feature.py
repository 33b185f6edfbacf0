"""raw_feature: numbers or vectors of numbers; with boundaries, ids of the intervals they fall in."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.features.arrow_input import cells_of
from penstock.features.feature import (
    BadValue,
    Column,
    DenseColumn,
    Feature,
    FeatureInput,
    Float64Array,
    Int32Array,
    NumberArray,
    SparseColumn,
    TableSpec,
    input_and_table,
    one_per_row,
    row_of_value,
    sum_by_row,
)
from penstock.features.id_feature import IdEncoding, SparseIds
from penstock.features.normalizer import Normalizer, parse_normalizer
from penstock.features.sections import ParsingSection
from penstock.features.sections.types import RawFeature
from penstock.features.text import BadToken, Rule, Text, parse_numbers


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of one column: float32 columns as they are, everything else as float64.

    With boundaries they become ids of intervals: the id of x is the number of boundaries that are <= x. Boundaries
    1, 2: below 1 is 0; from 1 to below 2 is 1; from 2 on is 2.
    """

    name: str
    inputs: tuple[str, ...]
    width: int
    source: FeatureInput
    default: Float64Array
    """One number, or as many as a row has; none: a missing value is an error."""

    normalizer: Normalizer | None = None
    table: TableSpec | None = None
    boundaries: Float64Array | None = None
    reads_text: bool = False

    def parse(self, batch: pa.RecordBatch | pa.Table) -> Column:
        """Missing numbers are replaced by the default, then normalised, then cut by the boundaries."""
        # One number may stand for a null of a column of floating numbers.
        null = float(self.default[0]) if len(self.default) == 1 else None
        cells = cells_of(batch.column(self.source.column), self.source.column, null)
        if cells.weights is not None:
            raise BadValue(self.source.column, None, None, "is a map, which cannot be a raw_feature")
        values, lengths = cells.values, cells.lengths
        if isinstance(values, Text):
            values, lengths = self._parse_text(values, lengths, cells.joined)
        elif values.dtype == np.int64:
            values = values.astype(np.float64)
        if not np.isfinite(values).all():
            values, lengths = self._without_nan(values, lengths)
        if len(self.default) and lengths is not one_per_row(len(values)) and (missing := lengths == 0).any():
            positions = np.repeat(np.cumsum(lengths)[missing], len(self.default))
            values = np.insert(values, positions, np.tile(self.default, int(np.count_nonzero(missing))))
            lengths = np.where(missing, np.int32(len(self.default)), lengths)
        if self.normalizer is not None:
            with np.errstate(all="ignore"):
                values = self.normalizer.function(values.astype(np.float64))
        if self.boundaries is None:
            return self._dense(values, lengths)
        # float32 columns meet boundaries rounded to float32.
        boundaries = self.boundaries.astype(values.dtype)
        return SparseColumn(np.searchsorted(boundaries, values, side="right").astype(np.int64), lengths)

    def _dense(self, values: NumberArray, lengths: Int32Array) -> DenseColumn:
        one_each = self.width == 1 and lengths is one_per_row(len(values))
        if not one_each and (len(values) != self.width * len(lengths) or not (lengths == self.width).all()):
            row = int(np.argmax(lengths != self.width))
            expected = f"{self.width} {'value' if self.width == 1 else 'values'}"
            problem = f"expected {expected} (value_dim), found {lengths[row]}"
            if not lengths[row]:
                problem += f": it is missing and {self.source.default_option} is not set"
            raise BadValue(self.source.column, row, None, problem)
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float32, copy=False).reshape(-1, self.width)
        finite = np.isfinite(numbers)
        if not finite.all():
            row, index = np.argwhere(~finite)[0]
            value = float(values[row * self.width + index])
            made = "" if self.normalizer is None else ", as the normalizer made it"
            raise BadValue(self.source.column, int(row), value, f"is not a finite float32{made}")
        return DenseColumn(numbers)

    def _parse_text(self, text: Text, lengths: Int32Array, joined: bool) -> tuple[NumberArray, Int32Array]:
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


def build_raw_feature(config: RawFeature, parsing: ParsingSection) -> Feature:
    name, width = config.feature_name, config.value_dim
    source, table = input_and_table(config, parsing)
    if table is not None and source.encoded:
        return SparseIds(name, source, table, IdEncoding(Rule.PARSE_INTEGER, table.num_rows))
    normalizer = None
    if config.normalizer and not source.encoded:
        try:
            normalizer = parse_normalizer(config.normalizer)
        except ValueError as error:
            raise ConfigError.at("normalizer", f"'{config.normalizer}': {error}") from error
    default = np.empty(0)
    if source.default is not None:
        separator = source.separator.decode()
        tokens = source.default.split(separator) if separator else [source.default]
        try:
            default = np.array([float(token) for token in tokens])
        except ValueError as error:
            raise ConfigError.at(source.default_option, f"'{source.default}' is not a number") from error
        if len(default) not in (1, width):
            raise ConfigError.at(source.default_option, f"has {len(default)} numbers; value_dim is {width}")
        default = np.resize(default, width)  # one number stands for each of a vector
    inputs = (source.column,)
    if table is None:
        return Numbers(name, inputs, width, source, default, normalizer)
    return Numbers(name, inputs, 0, source, default, normalizer, table, np.array(config.boundaries, float))
