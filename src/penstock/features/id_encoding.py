"""How the values of an id column become rows of an embedding table: one class per id-size option.

| option           | value -> row                                   | rows of the table   |
|------------------|------------------------------------------------|---------------------|
| num_buckets      | the integer itself                             | num_buckets         |
| hash_bucket_size | xxh64(text, seed 0), unsigned, modulo the size | hash_bucket_size    |
| vocab_list       | 2 + place in the list; 0 default, 1 unknown    | len(vocab_list) + 2 |
| vocab_dict       | the row given, from 2; 0 default, 1 unknown    | largest row + 1     |

With default_bucketize_value the vocabulary has all rows from 0 on, unknown values have that row, and no row
is kept for the default value: it is looked up like any other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

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
    Text,
    TextIds,
    TextVocabulary,
    hash_integers,
    hash_tokens,
    look_up_tokens,
    parse_integers,
    text_of,
)


class IdEncoding(Protocol):
    """Values of a column -> rows of a table."""

    @property
    def num_rows(self) -> int:
        """Rows of the table."""

    @property
    def reads_text(self) -> bool:
        """Whether a value counts as it is written, not as the number that it spells."""

    def encode_integers(self, values: Int64Array) -> Int64Array:
        """The rows of integer values."""

    def encode_text(self, text: Text, separator: bytes, weighted: bool) -> TextIds:
        """The rows of the values in texts."""

    def encode_default(self, value: str) -> int:
        """The row of a default value. ValueError when there is none."""


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Values are rows already. The parser checks that they lie in the table, as it does for every feature."""

    num_rows: int
    reads_text: bool = False

    def encode_integers(self, values: Int64Array) -> Int64Array:
        """The values themselves."""
        return values

    def encode_text(self, text: Text, separator: bytes, weighted: bool) -> TextIds:
        """The integers that the texts spell."""
        return parse_integers(text, separator, weighted)

    def encode_default(self, value: str) -> int:
        """The integer, if it is a row of the table."""
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
        """Hashes the decimal texts of the integers."""
        return hash_integers(values, self.num_rows)

    def encode_text(self, text: Text, separator: bytes, weighted: bool) -> TextIds:
        """Hashes the tokens."""
        return hash_tokens(text, separator, weighted, self.num_rows)

    def encode_default(self, value: str) -> int:
        """Hashes the value."""
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
    def _texts(self) -> TextVocabulary:
        return TextVocabulary(self.rows_by_value, self.unknown_row)

    @cached_property
    def _integers(self) -> tuple[Int64Array, Int64Array]:
        """The values that are the decimal text of an int64, sorted, with their rows."""
        known = sorted(
            (int(value), row) for value, row in self.rows_by_value.items() if _is_integer_text(value)
        )
        pairs = np.array(known, np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def encode_integers(self, values: Int64Array) -> Int64Array:
        """Looks the integers up as their decimal texts."""
        known, rows = self._integers
        if not len(known):
            return np.full(len(values), self.unknown_row, np.int64)
        places = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[places] == values, rows[places], self.unknown_row)

    def encode_text(self, text: Text, separator: bytes, weighted: bool) -> TextIds:
        """Looks the tokens up."""
        return look_up_tokens(text, separator, weighted, self._texts)

    def encode_default(self, value: str) -> int:
        """The row kept for the default, or else where the value stands in the vocabulary."""
        return (
            self.rows_by_value.get(value, self.unknown_row) if self.default_row is None else self.default_row
        )


def encoding_of(config: IdFeature) -> IdEncoding:
    """The encoding that a feature's options ask for."""
    num_rows = table_rows(config)
    if num_rows is None:
        raise ConfigError.at(
            "", "one of num_buckets, hash_bucket_size, vocab_list, vocab_dict is needed here"
        )
    if config.num_buckets is not None:
        return GivenRows(num_rows)
    if config.hash_bucket_size is not None:
        return HashedRows(num_rows)
    return _vocabulary(config, num_rows)


def _vocabulary(config: IdFeature, num_rows: int) -> VocabularyRows:
    unknown_row = config.default_bucketize_value
    first_row = FIRST_VOCABULARY_ROW if unknown_row is None else 0
    if config.vocab_list:
        rows_by_value = {value: first_row + place for place, value in enumerate(config.vocab_list)}
    else:
        _refuse_low_rows(config.vocab_dict, first_row)
        rows_by_value = dict(config.vocab_dict)
    if unknown_row is not None:
        return VocabularyRows(num_rows, rows_by_value, unknown_row)
    if config.default_value:
        rows_by_value.setdefault(config.default_value, DEFAULT_ROW)
    return VocabularyRows(num_rows, rows_by_value, UNKNOWN_ROW, DEFAULT_ROW)


def _refuse_low_rows(rows_by_value: dict[str, int], first_row: int) -> None:
    for value, row in rows_by_value.items():
        if row < first_row:
            raise ConfigError.at(
                "vocab_dict",
                f"'{value}' has row {row}; rows begin at {first_row} (0 is the default value, 1 any unknown "
                "one), unless default_bucketize_value says which row is for unknown values",
            )


def _is_integer_text(value: str) -> bool:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    return str(int(value)) == value and -(1 << 63) <= int(value) < 1 << 63
