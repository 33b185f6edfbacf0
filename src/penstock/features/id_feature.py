"""id_feature: categorical values, one or several in a row, with or without weights."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.features.arrow_input import Cells, read_cells
from penstock.features.feature import (
    BadValue,
    Feature,
    FeatureInput,
    Float32Array,
    Int64Array,
    NumberArray,
    SparseColumn,
    TableSpec,
    feature_input,
    fill_missing,
    row_of_value,
    sum_by_row,
)
from penstock.features.id_encoding import GivenRows, HashedRows, IdEncoding, encoding_of
from penstock.features.sections import ParsingSection
from penstock.features.sections.types import IdFeature, RawFeature
from penstock.features.text import BadToken, Text


@dataclass(frozen=True)
class SparseIds:
    name: str
    table: TableSpec
    source: FeatureInput
    encoding: IdEncoding
    max_values: int = 0
    """The most values that a row may have; 0: any number."""

    width: int = 0

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.source.column,)

    @property
    def reads_text(self) -> bool:
        return self.encoding.reads_text

    def parse(self, batch: pa.RecordBatch | pa.Table) -> SparseColumn:
        name, cells = self.source.column, read_cells(batch, self.source.column)
        if cells.weights is not None and not self.table.weighted:
            raise BadValue(name, None, None, "is a map of ids to weights; set weighted: true to use it")
        if isinstance(cells.values, Text):
            column = self._encode_text(cells, cells.values)
        else:
            column = whole_numbers(cells, cells.values, name)
            weights = column.weights
            if self.table.weighted and weights is None:
                weights = np.ones(len(column.values), np.float32)
            column = SparseColumn(self.encoding.encode_integers(column.values), column.lengths, weights)
        if self.source.default is not None:
            column = fill_missing(column, *self.default)
        if self.max_values and (too_many := column.lengths > self.max_values).any():
            row = int(np.argmax(too_many))
            problem = f"has {column.lengths[row]} values; value_dim allows {self.max_values}"
            raise BadValue(name, row, None, problem)
        return column

    @cached_property
    def default(self) -> tuple[Int64Array, Float32Array]:
        """Ids and weights of a row without a value of its own. ValueError: the default cannot be encoded."""
        if self.source.default is None:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        separator = self.source.separator.decode()
        tokens = self.source.default.split(separator) if separator else [self.source.default]
        ids, weights = [], []
        for token in filter(None, tokens):
            key, colon, weight = token.rpartition(":") if self.table.weighted else ("", "", token)
            ids.append(self.encoding.encode_default(key if colon else token))
            weights.append(float(weight) if colon else 1.0)
        return np.array(ids, np.int64), np.array(weights, np.float32)

    def _encode_text(self, cells: Cells, text: Text) -> SparseColumn:
        separator = self.source.separator if cells.joined else b""
        tokens_have_weights = self.table.weighted and cells.weights is None
        try:
            found = self.encoding.encode_text(text, separator, tokens_have_weights)
        except BadToken as error:
            row = row_of_value(cells.lengths, error.text_index)
            cure = "; fg_mode FG_NONE takes encoded ids, FG_NORMAL hashes raw values or looks them up"
            problem = error.problem + cure * self.source.encoded
            raise BadValue(self.source.column, row, error.token, problem) from error
        if cells.joined:
            return SparseColumn(*found)
        weights = found.weights if cells.weights is None else cells.weights[found.lengths > 0]
        return SparseColumn(found.values, sum_by_row(found.lengths, cells.lengths), weights)


def build_id_feature(config: IdFeature, parsing: ParsingSection) -> Feature:
    source = feature_input(config, parsing)
    encoding = encoding_of(config)
    table = table_of(config, encoding.num_rows, config.embedding_dim, weighted=config.weighted)
    if source.encoded:
        encoding = GivenRows(encoding.num_rows)
    return checked(SparseIds(config.feature_name, table, source, encoding, config.value_dim or 0))


def table_of(config: IdFeature | RawFeature, num_rows: int, dim: int, weighted: bool = False) -> TableSpec:
    return TableSpec(
        name=config.embedding_name or f"{config.feature_name}_emb",
        num_rows=num_rows,
        dim=dim,
        pooling=config.pooling,
        init_fn=config.init_fn,
        trainable=config.trainable,
        data_type=config.data_type,
        weighted=weighted,
    )


def checked(feature: SparseIds) -> SparseIds:
    """The feature, once its default is known to be usable. Hashing needs the kernels, and cannot fail."""
    if not isinstance(feature.encoding, HashedRows):
        try:
            _ = feature.default
        except ValueError as error:
            message = str(error) if str(error).startswith("is ") else "is not an integer"
            raise ConfigError.at(
                feature.source.default_option, f"'{feature.source.default}' {message}"
            ) from error
    return feature


def whole_numbers(cells: Cells, values: NumberArray, column: str) -> SparseColumn:
    """Integers as they are; floating numbers if they are whole, NaN counting as missing."""
    if values.dtype == np.int64:
        return SparseColumn(values, cells.lengths, cells.weights)
    lengths, weights, present = cells.lengths, cells.weights, ~np.isnan(values)
    if not present.all():
        values, lengths = values[present], sum_by_row(present, lengths)
        weights = None if weights is None else weights[present]
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    wrong = integers != values
    if wrong.any():
        index = int(np.argmax(wrong))
        raise BadValue(
            column, row_of_value(lengths, index), float(values[index]), "is not a whole number, so no id"
        )
    return SparseColumn(integers, lengths, weights)
