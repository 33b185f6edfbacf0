"""How the values of an id column become rows of an embedding table: one class per id-size option.

| option           | value -> row                                   | rows of the table   |
|------------------|------------------------------------------------|---------------------|
| num_buckets      | the integer itself                             | num_buckets         |
| hash_bucket_size | xxh64(text, seed 0), unsigned, modulo the size | hash_bucket_size    |
| vocab_list       | 2 + index in the list; 0 default, 1 unknown    | len(vocab_list) + 2 |
| vocab_dict       | the row given, from 2; 0 default, 1 unknown    | largest row + 1     |

With default_bucketize_value the vocabulary has all rows from 0 on, unknown values have that row, and no row
is kept for the default value: it is looked up like any other.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.config.errors import ConfigError
from penstock.features.feature import Int64Array
from penstock.features.sections.types import (
    DEFAULT_ROW,
    FIRST_VOCABULARY_ROW,
    UNKNOWN_ROW,
    IdFeature,
    table_rows,
)
from penstock.features.text import (
    Rule,
    Text,
    TextIds,
    Vocabulary,
    encode_ids,
    hash_integers,
    text_of,
    vocabulary_of,
)


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Values are rows already. The parser checks that they lie in the table, as it does for every feature."""

    num_rows: int
    reads_text: bool = False

    def encode_integers(self, values: Int64Array) -> Int64Array:
        return values

    def encode_text(self, text: Text, separator: bytes, weighted: bool) -> TextIds:
        return encode_ids(text, separator, weighted, Rule.PARSE_INTEGER)

    def encode_default(self, value: str) -> int:
        row = int(value)
        if not 0 <= row < self.num_rows:
            raise ValueError(f"is outside 0 to {self.num_rows - 1}")
        return row


@dataclass(frozen=True, slots=True)
class HashedRows:
    """A value's row is its hash modulo the size of the table. Integers hash as their decimal text."""

    num_rows: int
    reads_text: bool = True

    def encode_integers(self, values: Int64Array) -> Int64Array:
        return hash_integers(values, self.num_rows)

    def encode_text(self, text: Text, separator: bytes, weighted: bool) -> TextIds:
        return encode_ids(text, separator, weighted, Rule.HASH, num_buckets=self.num_rows)

    def encode_default(self, value: str) -> int:
        return int(self.encode_text(text_of([value]), b"", weighted=False).values[0])


@dataclass(frozen=True)
class VocabularyRows:
    """Known values have rows of their own; all others share `unknown_row`."""

    num_rows: int
    rows_by_value: dict[str, int]
    unknown_row: int
    default_row: int | None = None
    """Row of the default value, where the table keeps one for it."""

    reads_text: bool = True

    @cached_property
    def _table(self) -> Vocabulary:
        return vocabulary_of(self.rows_by_value, self.unknown_row)

    @cached_property
    def _integers(self) -> tuple[Int64Array, Int64Array]:
        """The values that are the decimal text of an int64, sorted, with their rows."""
        known = sorted(
            (int(value), row) for value, row in self.rows_by_value.items() if _is_integer_text(value)
        )
        pairs = np.array(known, np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def encode_integers(self, values: Int64Array) -> Int64Array:
        known, rows = self._integers
        if not len(known):
            return np.full(len(values), self.unknown_row, np.int64)
        indices = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[indices] == values, rows[indices], self.unknown_row)

    def encode_text(self, text: Text, separator: bytes, weighted: bool) -> TextIds:
        return encode_ids(text, separator, weighted, Rule.LOOK_UP, vocabulary=self._table)

    def encode_default(self, value: str) -> int:
        """The row kept for the default, or else where the value stands in the vocabulary."""
        return (
            self.rows_by_value.get(value, self.unknown_row) if self.default_row is None else self.default_row
        )


IdEncoding = GivenRows | HashedRows | VocabularyRows
"""Values of a column -> rows of a table. `reads_text`: a value counts as it is written, not as the number it spells."""


def encoding_of(config: IdFeature) -> IdEncoding:
    num_rows = table_rows(config)
    if num_rows is None:
        raise ConfigError.at(
            "", "one of num_buckets, hash_bucket_size, vocab_list, vocab_dict is needed here"
        )
    if config.num_buckets is not None:
        return GivenRows(num_rows)
    if config.hash_bucket_size is not None:
        return HashedRows(num_rows)
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
    if unknown_row is not None:
        return VocabularyRows(num_rows, rows_by_value, unknown_row)
    if config.default_value:
        rows_by_value.setdefault(config.default_value, DEFAULT_ROW)
    return VocabularyRows(num_rows, rows_by_value, UNKNOWN_ROW, DEFAULT_ROW)


def _is_integer_text(value: str) -> bool:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    return str(int(value)) == value and -(1 << 63) <= int(value) < 1 << 63
