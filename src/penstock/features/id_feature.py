"""id_feature: categorical values, one or several in a row, with or without weights, as rows of an embedding table.

| option           | value -> row                                   | rows of the table   |
|------------------|------------------------------------------------|---------------------|
| num_buckets      | the integer itself                             | num_buckets         |
| hash_bucket_size | xxh64(text, seed 0), unsigned, modulo the size | hash_bucket_size    |
| vocab_list       | 2 + index in the list; 0 default, 1 unknown    | len(vocab_list) + 2 |
| vocab_dict       | the row given, from 2; 0 default, 1 unknown    | largest row + 1     |

With default_bucketize_value the vocabulary has all rows from 0 on, unknown values have that row, and no row
is kept for the default value: it is looked up like any other.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.features.arrow_input import Cells, cells_of, text_of
from penstock.features.feature import (
    BadValue,
    Feature,
    FeatureInput,
    Float32Array,
    Int64Array,
    NumberArray,
    SparseColumn,
    TableSpec,
    input_and_table,
    row_of_value,
    sum_by_row,
)
from penstock.features.sections import ParsingSection
from penstock.features.sections.types import DEFAULT_ROW, FIRST_VOCABULARY_ROW, UNKNOWN_ROW, IdFeature
from penstock.features.text import (
    NO_VOCABULARY,
    BadToken,
    Rule,
    Text,
    Vocabulary,
    encode_ids,
    hash_integers,
)


@dataclass(frozen=True)
class IdEncoding:
    """Values of a column -> rows of a table.

    Integers that are hashed or looked up count as their decimal text. That rows lie in the table is checked by the
    parser, as for every feature.
    """

    rule: Rule
    num_rows: int
    rows_by_value: dict[str, int] = field(default_factory=dict)
    """The vocabulary, where there is one."""

    unknown_row: int = UNKNOWN_ROW
    """Row of all values that are not in the vocabulary."""

    default_row: int | None = None
    """Row of the default value, where the table keeps one for it."""

    @cached_property
    def vocabulary(self) -> Vocabulary:
        if self.rule is not Rule.LOOK_UP:
            return NO_VOCABULARY
        from penstock.features.kernels import fill_slots

        keys = text_of(pa.array(list(self.rows_by_value), pa.large_string()))
        # A free slot is -1: it has the last row, that of unknown values.
        rows = np.array([*self.rows_by_value.values(), self.unknown_row], np.int64)
        slots = np.full(1 << (2 * len(rows) - 1).bit_length(), -1, np.int64)
        fill_slots(keys.data, keys.offsets, slots)
        return slots, rows[slots], keys.data, keys.offsets

    @cached_property
    def _rows_by_integer(self) -> tuple[Int64Array, Int64Array]:
        """The values that are the decimal text of an int64, sorted, with their rows."""
        known = sorted(
            (int(value), row) for value, row in self.rows_by_value.items() if _is_integer_text(value)
        )
        pairs = np.array(known, np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def encode_integers(self, values: Int64Array) -> Int64Array:
        if self.rule is Rule.HASH:
            return hash_integers(values, self.num_rows)
        known, rows = self._rows_by_integer
        if not len(known):
            return np.full(len(values), self.unknown_row, np.int64)
        indices = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[indices] == values, rows[indices], self.unknown_row)

    def encode_default(self, value: str) -> int:
        if self.rule is Rule.HASH:
            text = text_of(pa.array([value]))
            return int(encode_ids(text, b"", False, Rule.HASH, self.num_rows).values[0])
        if self.rule is Rule.LOOK_UP:
            known = self.rows_by_value.get(value, self.unknown_row)
            return known if self.default_row is None else self.default_row
        row = int(value)
        if not 0 <= row < self.num_rows:
            raise ValueError(f"is outside 0 to {self.num_rows - 1}")
        return row


@dataclass
class SparseIds:
    name: str
    source: FeatureInput
    table: TableSpec
    encoding: IdEncoding
    max_values: int = 0
    """The most values that a row may have; 0: any number."""

    width: int = 0

    def __post_init__(self) -> None:
        self.inputs = (self.source.column,)
        self.reads_text = self.encoding.rule is not Rule.PARSE_INTEGER
        # A default must be usable. Hashing one needs the kernels, and cannot fail.
        if self.source.default is not None and self.encoding.rule is not Rule.HASH:
            try:
                _ = self.default
            except ValueError as error:
                message = str(error) if str(error).startswith("is ") else "is not an integer"
                problem = f"'{self.source.default}' {message}"
                raise ConfigError.at(self.source.default_option, problem) from error

    def parse(self, batch: pa.RecordBatch | pa.Table) -> SparseColumn:
        name = self.source.column
        cells = cells_of(batch.column(name), name)
        if cells.weights is not None and not self.table.weighted:
            raise BadValue(name, None, None, "is a map of ids to weights; set weighted: true to use it")
        if isinstance(cells.values, Text):
            column = self._encode_text(cells, cells.values)
        else:
            column = self._encode_numbers(cells, cells.values)
        if self.source.default is not None and (missing := column.lengths == 0).any():
            ids, weights = self.default
            positions = np.repeat(np.cumsum(column.lengths)[missing], len(ids))
            num_missing = int(np.count_nonzero(missing))
            column = SparseColumn(
                np.insert(column.values, positions, np.tile(ids, num_missing)),
                np.where(missing, np.int32(len(ids)), column.lengths),
                None
                if column.weights is None
                else np.insert(column.weights, positions, np.tile(weights, num_missing)),
            )
        if self.max_values and (too_many := column.lengths > self.max_values).any():
            row = int(np.argmax(too_many))
            problem = f"has {column.lengths[row]} values; value_dim allows {self.max_values}"
            raise BadValue(name, row, None, problem)
        return column

    @cached_property
    def default(self) -> tuple[Int64Array, Float32Array]:
        """Ids and weights of a row without a value of its own. ValueError: the default cannot be encoded."""
        assert self.source.default is not None
        separator = self.source.separator.decode()
        tokens = self.source.default.split(separator) if separator else [self.source.default]
        ids, weights = [], []
        for token in filter(None, tokens):
            key, colon, weight = token.rpartition(":") if self.table.weighted else ("", "", token)
            ids.append(self.encoding.encode_default(key if colon else token))
            weights.append(float(weight) if colon else 1.0)
        return np.array(ids, np.int64), np.array(weights, np.float32)

    def _encode_text(self, cells: Cells, text: Text) -> SparseColumn:
        encoding, separator = self.encoding, self.source.separator if cells.joined else b""
        tokens_have_weights = self.table.weighted and cells.weights is None
        try:
            found = encode_ids(
                text, separator, tokens_have_weights, encoding.rule, encoding.num_rows, encoding.vocabulary
            )
        except BadToken as error:
            row = row_of_value(cells.lengths, error.text_index)
            cure = "; fg_mode FG_NONE takes encoded ids, FG_NORMAL hashes raw values or looks them up"
            problem = error.problem + cure * self.source.encoded
            raise BadValue(self.source.column, row, error.token, problem) from error
        if cells.joined:
            return found
        weights = found.weights if cells.weights is None else cells.weights[found.lengths > 0]
        return SparseColumn(found.values, sum_by_row(found.lengths, cells.lengths), weights)

    def _encode_numbers(self, cells: Cells, values: NumberArray) -> SparseColumn:
        """Integers, or floating numbers if they are whole, NaN counting as missing."""
        lengths, weights = cells.lengths, cells.weights
        if values.dtype != np.int64:
            present = ~np.isnan(values)
            if not present.all():
                values, lengths = values[present], sum_by_row(present, lengths)
                weights = None if weights is None else weights[present]
            with np.errstate(invalid="ignore"):
                integers = values.astype(np.int64)
            wrong = integers != values
            if wrong.any():
                index = int(np.argmax(wrong))
                row, value = row_of_value(lengths, index), float(values[index])
                raise BadValue(self.source.column, row, value, "is not a whole number, so no id")
            values = integers
        if self.table.weighted and weights is None:
            weights = np.ones(len(values), np.float32)
        if self.encoding.rule is not Rule.PARSE_INTEGER:
            values = self.encoding.encode_integers(values)
        return SparseColumn(values, lengths, weights)


def build_id_feature(config: IdFeature, parsing: ParsingSection) -> Feature:
    source, table = input_and_table(config, parsing)
    if table is None:
        raise ConfigError.at(
            "", "one of num_buckets, hash_bucket_size, vocab_list, vocab_dict is needed here"
        )
    encoding = IdEncoding(Rule.PARSE_INTEGER, table.num_rows)
    if config.hash_bucket_size is not None:
        encoding = IdEncoding(Rule.HASH, table.num_rows)
    elif config.num_buckets is None:
        unknown_row = config.default_bucketize_value
        first_row = FIRST_VOCABULARY_ROW if unknown_row is None else 0
        rows_by_value = dict(config.vocab_dict) or {
            value: first_row + index for index, value in enumerate(config.vocab_list)
        }
        for value, row in rows_by_value.items():
            if row < first_row:
                raise ConfigError.at(
                    "vocab_dict",
                    f"'{value}' has row {row}; rows begin at {first_row} (0 is the default value, 1 any unknown "
                    "one), unless default_bucketize_value says which row is for unknown values",
                )
        default_row = None
        if unknown_row is None:
            unknown_row, default_row = UNKNOWN_ROW, DEFAULT_ROW
            if config.default_value:
                rows_by_value.setdefault(config.default_value, DEFAULT_ROW)
        encoding = IdEncoding(Rule.LOOK_UP, table.num_rows, rows_by_value, unknown_row, default_row)
    if source.encoded:
        encoding = IdEncoding(Rule.PARSE_INTEGER, table.num_rows)
    return SparseIds(config.feature_name, source, table, encoding, config.value_dim or 0)


def _is_integer_text(value: str) -> bool:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    return str(int(value)) == value and -(1 << 63) <= int(value) < 1 << 63
