"""Encodings: Values -> ids of a table, or numbers.

| options          | value -> id                                     | rows of the table   |
|------------------|-------------------------------------------------|---------------------|
| num_buckets      | the integer itself                              | num_buckets         |
| hash_bucket_size | xxh64(string, seed 0), unsigned, modulo the size | hash_bucket_size   |
| vocab_list       | 2 + index in the list; 0 default, 1 unknown     | len(vocab_list) + 2 |
| vocab_dict       | the row given, from 2; 0 default, 1 unknown     | largest row + 1     |
| vocab_file       | as the list or the dict that it holds           |                     |
| boundaries       | how many boundaries are <= the number           | boundaries + 1      |
| missing_bucket   | a missing number: boundaries + 1                | boundaries + 2      |
| zch, dynamicemb  | a key of 64 bits, that training gives a row     | zch_size, max_capacity |

With default_bucketize_value the vocabulary has all rows from 0 on, unknown values have that row, and no row
is kept for the default value: it is looked up like any other.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.features.arrow_values import strings_of
from penstock.features.normalizer import Normalizer
from penstock.features.sections.types import DEFAULT_ROW, FIRST_VOCABULARY_ROW, UNKNOWN_ROW
from penstock.features.strings import (
    NO_VOCABULARY,
    Rule,
    Vocabulary,
    as_numbers,
    encode_strings,
    from_list,
    hash_integers,
)
from penstock.features.value_counts import NOT_IN_VOCABULARY, ValueCounts
from penstock.features.values import (
    BadItem,
    Column,
    DenseColumn,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    NumberArray,
    SparseColumn,
    Strings,
    Values,
    one_per_row,
    row_of_value,
    sum_by_row,
    with_first_steps,
)


class Encoding(Protocol):
    """How the values of a feature become its column."""

    @property
    def reads_text(self) -> bool:
        """Whether values count as they are written, so that 02134 and 2134 are two."""

    @property
    def shown(self) -> str:
        """What it does, for people, in a few words."""

    def encode(self, values: Values, max_steps: int = 0) -> Column:
        """The column of these values; one that cannot be used raises BadItem. Sequences are cut at `max_steps`."""


@dataclass(frozen=True)
class IdEncoding:
    """Values -> rows of a table, or keys of one that grows.

    Integers that are hashed or looked up count as their decimal strings. That rows lie in the table is checked by the
    parser, as for every feature.
    """

    rule: Rule
    num_rows: int
    """Of the table; 0: ids and hashes are keys of 64 bits, of a table that grows."""

    rows_by_value: dict[str, int] = field(default_factory=dict)
    """The vocabulary, where there is one."""

    unknown_row: int = UNKNOWN_ROW
    """Row of all values that are not in the vocabulary."""

    default_row: int | None = None
    """Row of the default value, where the table keeps one for it."""

    default: str | None = None
    """What stands in for a row without a value; None: nothing does."""

    separator: str = ""
    """Between the values of `default`."""

    weighted: bool = False
    max_values: int = 0
    """The most values that a row or step may have; 0: any number."""

    default_option: str = "default_value"
    """The option that sets the default, for messages."""

    fills_sequences: bool = False
    """An empty sequence has one step, also where there is no default: it then has no value, and a zero vector."""

    def __post_init__(self) -> None:
        # A default must be usable. Hashing one needs the kernels, and cannot fail.
        if self.default is not None and self.rule is not Rule.HASH:
            try:
                _ = self.default_ids
            except ValueError as error:
                message = str(error) if str(error).startswith("is ") else "is not an integer"
                raise ConfigError.at(self.default_option, f"'{self.default}' {message}") from error

    @property
    def reads_text(self) -> bool:
        return self.rule is not Rule.PARSE_INTEGER

    @property
    def shown(self) -> str:
        if self.rule is Rule.HASH:
            return "hashed" if self.num_rows else "hashed to keys of 64 bits"
        return (
            "ids as given" if self.rule is Rule.PARSE_INTEGER else f"looked up in {len(self.rows_by_value):,}"
        )

    def encode(self, values: Values, max_steps: int = 0) -> SparseColumn:
        return self._finished(self._encoded(values, max_steps))

    def encode_known(self, values: Values, max_steps: int = 0) -> tuple[SparseColumn, ValueCounts]:
        """The same without ids that the table does not have, as if the rows had never had them; and how many there are.

        Values that are not in a vocabulary have a row of their own: they are counted, and stay.
        """
        column, num_unknown = self._encoded(values, max_steps), 0
        num_values, of_rows = len(column.values), column.lengths if column.steps is None else column.steps
        missing = 0 if of_rows is one_per_row(num_values) else int(np.count_nonzero(of_rows == 0))
        if self.rule is Rule.LOOK_UP and self._unknown_row_is_apart:
            num_unknown = int(np.count_nonzero(column.values == self.unknown_row))
        elif self.rule is Rule.PARSE_INTEGER:
            # Unsigned, negative ids are huge.
            known = column.values.view(np.uint64) < np.uint64(self.num_rows)
            num_unknown = num_values - int(np.count_nonzero(known))
            if num_unknown:
                weights = None if column.weights is None else column.weights[known]
                lengths = sum_by_row(known, column.lengths)
                column = SparseColumn(column.values[known], lengths, weights, column.steps)
        counts = ValueCounts(len(of_rows), missing, num_values, num_unknown, self.outside)
        return self._finished(column), counts

    @property
    def is_counted(self) -> bool:
        """Whether there are values that the table does not know: every value has a hash, or a key of one that grows."""
        return self.rule is not Rule.HASH and self.num_rows > 0

    @property
    def outside(self) -> str:
        """What a value is that the table does not know."""
        is_range = self.rule is Rule.PARSE_INTEGER
        return f"outside 0 to {self.num_rows - 1:,}" if is_range else NOT_IN_VOCABULARY

    @cached_property
    def _unknown_row_is_apart(self) -> bool:
        """False: default_bucketize_value is the row of a word too, and both count as known."""
        return self.unknown_row not in self.rows_by_value.values()

    def _encoded(self, values: Values, max_steps: int) -> SparseColumn:
        """Without the default."""
        if values.weights is not None and not self.weighted:
            raise BadItem(None, None, "is a map of ids to weights; set weighted: true to use it")
        if not isinstance(values.items, Strings):
            return self._encode_numbers(values, values.items)
        tokens_have_weights = self.weighted and values.weights is None
        options = (self.rule, self.num_rows, self.vocabulary)
        return encode_strings(values, *options, weighted=tokens_have_weights, max_steps=max_steps)

    def _finished(self, column: SparseColumn) -> SparseColumn:
        if column.steps is not None and (self.fills_sequences or self.default is not None):
            lengths, steps = with_first_steps(column.lengths, column.steps)
            column = replace(column, lengths=lengths, steps=steps)
        if self.default is not None:
            column = self._filled(column)
        if self.max_values and (too_many := column.lengths > self.max_values).any():
            row = int(np.argmax(too_many))
            problem = f"has {column.lengths[row]} values; value_dim allows {self.max_values}"
            raise BadItem(row, None, problem)
        return column

    def _filled(self, column: SparseColumn) -> SparseColumn:
        """The column with the default in rows and steps without a value."""
        missing = column.lengths == 0
        if not missing.any():
            return column
        ids, weights = self.default_ids
        positions = np.repeat(np.cumsum(column.lengths)[missing], len(ids))
        num_missing = int(np.count_nonzero(missing))
        return SparseColumn(
            np.insert(column.values, positions, np.tile(ids, num_missing)),
            np.where(missing, np.int32(len(ids)), column.lengths),
            None
            if column.weights is None
            else np.insert(column.weights, positions, np.tile(weights, num_missing)),
            column.steps,
        )

    @cached_property
    def default_ids(self) -> tuple[Int64Array, Float32Array]:
        """Ids and weights of a row without a value of its own. ValueError: the default cannot be encoded."""
        assert self.default is not None
        tokens = self.default.split(self.separator) if self.separator else [self.default]
        ids, weights = [], []
        for token in filter(None, tokens):
            key, colon, weight = token.rpartition(":") if self.weighted else ("", "", token)
            ids.append(self._encode_default(key if colon else token))
            weights.append(float(weight) if colon else 1.0)
        return np.array(ids, np.int64), np.array(weights, np.float32)

    def _encode_default(self, value: str) -> int:
        if self.rule is Rule.HASH:
            one = Values(from_list([value]), one_per_row(1))
            return int(encode_strings(one, Rule.HASH, self.num_rows).values[0])
        if self.rule is Rule.LOOK_UP:
            known = self.rows_by_value.get(value, self.unknown_row)
            return known if self.default_row is None else self.default_row
        row = int(value)
        if self.num_rows and not 0 <= row < self.num_rows:
            raise ValueError(f"is outside 0 to {self.num_rows - 1}")
        return row

    @cached_property
    def vocabulary(self) -> Vocabulary:
        if self.rule is not Rule.LOOK_UP:
            return NO_VOCABULARY
        from penstock.features.kernels import fill_slots

        keys = strings_of(pa.array(list(self.rows_by_value), pa.large_string()))
        offsets = np.append(keys.starts, keys.ends[-1:]) if len(keys) else np.zeros(1, np.int64)
        offsets.flags.writeable = False
        # A free slot is -1: it has the last row, that of unknown values.
        rows = np.array([*self.rows_by_value.values(), self.unknown_row], np.int64)
        slots = np.full(1 << (2 * len(rows) - 1).bit_length(), -1, np.int64)
        fill_slots(keys.data, offsets, slots)
        return slots, rows[slots], keys.data, offsets

    @cached_property
    def _rows_by_integer(self) -> tuple[Int64Array, Int64Array]:
        """The values that are the decimal string of an int64, "1" or "1.0", sorted, with their rows."""
        known: dict[int, tuple[int, str]] = {}
        for value, row in self.rows_by_value.items():
            whole, _, zeros = value.partition(".")
            if not _is_integer(whole) or zeros.strip("0"):
                continue
            own_row, same = known.setdefault(int(whole), (row, value))
            # The default value is the last of them: a word of the vocabulary comes before it.
            if own_row != row and row != self.default_row:
                words = f"'{same}' and '{value}' of the vocabulary are one; leave out one of them"
                raise BadItem(None, None, f"is a column of numbers, where {words}")
        pairs = np.array(sorted((value, row) for value, (row, _) in known.items()), np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def _encode_numbers(self, values: Values, items: NumberArray) -> SparseColumn:
        """Integers, or floating numbers if they are whole, NaN counting as missing."""
        lengths, weights, ids = values.lengths, values.weights, items
        if items.dtype != np.int64:
            present = ~np.isnan(items)
            if not present.all():
                items, lengths = items[present], sum_by_row(present, lengths)
                weights = None if weights is None else weights[present]
            with np.errstate(invalid="ignore"):
                ids = items.astype(np.int64)
            wrong = ids != items
            if wrong.any():
                index = int(np.argmax(wrong))
                row, value = row_of_value(lengths, index), float(items[index])
                raise BadItem(row, value, "is not a whole number, so no id")
        if self.weighted and weights is None:
            weights = np.ones(len(ids), np.float32)
        if self.rule is Rule.HASH:
            ids = hash_integers(ids, self.num_rows)
        elif self.rule is Rule.LOOK_UP:
            known, rows = self._rows_by_integer
            if len(known):
                indices = np.minimum(np.searchsorted(known, ids), len(known) - 1)
                ids = np.where(known[indices] == ids, rows[indices], self.unknown_row)
            else:
                ids = np.full(len(ids), self.unknown_row, np.int64)
        return SparseColumn(ids, lengths, weights, values.steps)


def _cure(string: str) -> str:
    """What to do about a value that is not a number."""
    if re.fullmatch(r"[+-]?\d+,\d+", string):
        return "; where a comma is the decimal point of CSV files, set data_config.decimal to ','"
    return "; leave it empty if it is missing, or make it an id_feature if it is a string" if string else ""


def vocabulary_encoding(
    rows_by_value: dict[str, int], default_value: str, unknown_row: int | None, **options: Any
) -> IdEncoding:
    """An encoding that looks values up; ConfigError where their rows are kept for others."""
    first_row = FIRST_VOCABULARY_ROW if unknown_row is None else 0
    for value, row in rows_by_value.items():
        if row < first_row:
            raise ConfigError.at(
                "vocab_dict",
                f"'{value}' has row {row}; rows begin at {first_row} (0 is the default value, 1 any unknown "
                "one), unless default_bucketize_value says which row is for unknown values",
            )
    rows, default_row = dict(rows_by_value), None
    num_rows = max([*rows.values(), UNKNOWN_ROW if unknown_row is None else unknown_row]) + 1
    if unknown_row is None:
        unknown_row, default_row = UNKNOWN_ROW, DEFAULT_ROW
        if default_value:
            rows.setdefault(default_value, DEFAULT_ROW)
    return IdEncoding(Rule.LOOK_UP, num_rows, rows, unknown_row, default_row, **options)


def _is_integer(value: str) -> bool:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    return str(int(value)) == value and -(1 << 63) <= int(value) < 1 << 63


_NOT_A_NUMBER = np.array([np.nan])


@dataclass(frozen=True, slots=True)
class NumberEncoding:
    """Numbers: float32 columns as they are, everything else as float64.

    With boundaries they become ids of intervals: the id of x is the number of boundaries that are <= x. Boundaries
    1, 2: below 1 is 0; from 1 to below 2 is 1; from 2 on is 2.
    """

    width: int
    """Numbers of each row or step."""

    default: Float64Array
    """One number, or as many as a row has; none: a missing value is an error."""

    normalizer: Normalizer | None = None
    boundaries: Float64Array | None = None
    default_option: str = "default_value"
    """The option that sets the default, for messages."""

    fills_sequences: bool = False
    """An empty sequence of ids has one step, also where there is no default."""

    reads_text: bool = False
    has_missing_row: bool = False
    """Whether a missing number has an interval of its own, after all others; the default then counts for nothing."""

    @property
    def shown(self) -> str:
        words = ["a number" if self.width == 1 else f"{self.width} numbers"]
        if self.normalizer is not None:
            words.append(self.normalizer.text)
        if self.boundaries is not None:
            words.append(f"cut at {len(self.boundaries):,} boundaries")
        return ", ".join(words)

    @property
    def null(self) -> float | None:
        """What a null of a column of floating numbers may be read as at once."""
        return float(self.default[0]) if len(self.default) == 1 else None

    def encode(self, values: Values, max_steps: int = 0) -> Column:
        """Missing numbers are replaced by the default, then normalised, then cut by the boundaries."""
        if values.weights is not None:
            raise BadItem(None, None, "is a map, which cannot be numbers")
        try:
            values = as_numbers(values, max_steps)
        except BadItem as error:
            raise BadItem(error.row, error.value, error.problem + _cure(str(error.value))) from error
        numbers, lengths, steps = values.items, values.lengths, values.steps
        assert not isinstance(numbers, Strings)
        if numbers.dtype == np.int64:
            numbers = numbers.astype(np.float64)
        if not np.isfinite(numbers).all():
            numbers, lengths = self._without_nan(numbers, lengths)
        default = _NOT_A_NUMBER if self.has_missing_row else self.default
        has_ids = self.boundaries is not None
        if steps is not None and (len(default) or (self.fills_sequences and has_ids)):
            lengths, steps = with_first_steps(lengths, steps)
        if len(default) and lengths is not one_per_row(len(numbers)) and (missing := lengths == 0).any():
            positions = np.repeat(np.cumsum(lengths)[missing], len(default))
            filler = np.tile(default, int(np.count_nonzero(missing)))
            numbers = np.insert(numbers, positions, filler)
            lengths = np.where(missing, np.int32(len(default)), lengths)
        is_missing = np.isnan(numbers) if self.has_missing_row else None
        if self.normalizer is not None:
            with np.errstate(all="ignore"):
                numbers = self.normalizer.function(numbers.astype(np.float64))
        if self.boundaries is None:
            return DenseColumn(self._dense(numbers, lengths), steps)
        # float32 columns meet boundaries rounded to float32.
        boundaries = self.boundaries.astype(numbers.dtype)
        ids = np.searchsorted(boundaries, numbers, side="right").astype(np.int64)
        if is_missing is not None:
            ids[is_missing] = len(boundaries) + 1
        return SparseColumn(ids, lengths, steps=steps)

    def _dense(self, numbers: NumberArray, lengths: Int32Array) -> Float32Array:
        one_each = self.width == 1 and lengths is one_per_row(len(numbers))
        if not one_each and (len(numbers) != self.width * len(lengths) or not (lengths == self.width).all()):
            row = int(np.argmax(lengths != self.width))
            expected = f"{self.width} {'value' if self.width == 1 else 'values'}"
            problem = f"expected {expected} (value_dim), found {lengths[row]}"
            if not lengths[row]:
                problem += f": it is missing and {self.default_option} is not set"
            raise BadItem(row, None, problem)
        with np.errstate(over="ignore"):
            dense: Float32Array = numbers.astype(np.float32, copy=False).reshape(-1, self.width)
        finite = np.isfinite(dense)
        if not finite.all():
            row, index = np.argwhere(~finite)[0]
            value = float(numbers[row * self.width + index])
            made = "" if self.normalizer is None else ", as the normalizer made it"
            raise BadItem(int(row), value, f"is not a finite float32{made}")
        return dense

    def _without_nan(self, numbers: NumberArray, lengths: Int32Array) -> tuple[NumberArray, Int32Array]:
        """A row that is NaN alone is missing, as if it were null; among other numbers NaN is an error."""
        is_nan = np.isnan(numbers)
        in_vector = is_nan & (np.repeat(lengths, lengths) > 1)
        if in_vector.any():
            raise BadItem(row_of_value(lengths, int(np.argmax(in_vector))), None, "has NaN among its values")
        return numbers[~is_nan], sum_by_row(~is_nan, lengths)
