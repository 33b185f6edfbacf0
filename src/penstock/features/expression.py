"""expr_feature: a formula over columns, row by row; formula.py says what it may hold.

Variables with several values in a row are taken value by value, so they need as many as each other; one with a single
value goes with each. Where a variable is missing, so is the result, unless fill_missing is the number for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.errors import ConfigError
from penstock.features.feature import Recipe
from penstock.features.formula import Formula, names_in, parse_formula, time_key
from penstock.features.sections.types import ExprFeature
from penstock.features.strings import as_numbers, to_arrow
from penstock.features.values import (
    BadItem,
    Float64Array,
    Int32Array,
    Int64Array,
    Strings,
    Values,
    one_per_row,
    row_of_value,
    sum_by_row,
)


def expr_recipe(config: ExprFeature) -> Recipe:
    inputs = config.variables or names_in(config.expression)
    names = [each.rpartition(":")[2] for each in inputs]
    for name in names:
        if not name.isidentifier():
            problem = f"'{name}' is no name that a formula can have: letters, digits and _"
            raise ConfigError.at("variables", problem)
    try:
        formula = parse_formula(config.expression, names)
    except ValueError as error:
        raise ConfigError.at("expression", str(error)) from error
    if not formula.numbers | formula.times:
        raise ConfigError.at("expression", f"'{config.expression}' has no variable")
    return Recipe(tuple(inputs), Calculation(formula, config.fill_missing, bool(config.boundaries)))


@dataclass(frozen=True, slots=True)
class Calculation:
    """The values of a formula; its variables are the inputs, in their order."""

    formula: Formula
    fill_missing: float | None = None
    may_be_infinite: bool = False
    """Where boundaries follow: the interval of an infinity is the last one."""

    def __call__(self, inputs: Sequence[Values]) -> Values:
        read: dict[str, Values] = {}
        for index, (name, values) in enumerate(zip(self.formula.variables, inputs, strict=True)):
            try:
                if name in self.formula.numbers:
                    read[name] = self._filled(as_numbers(values))
                if name in self.formula.times:
                    read[time_key(name)] = self._filled(as_times(values))
            except BadItem as error:
                raise BadItem(error.row, error.value, error.problem, index) from error
        counts = self._counts([values.lengths for values in read.values()])
        numbers = {name: _spread(values, counts) for name, values in read.items()}
        with np.errstate(all="ignore"):
            result = np.broadcast_to(self.formula(numbers), len(next(iter(numbers.values()))))
        if not self.may_be_infinite and (wrong := np.isinf(result)).any():
            index = int(np.argmax(wrong))
            problem = f"is what '{self.formula.text}' gives, and no finite number"
            raise BadItem(row_of_value(counts, index), float(result[index]), problem)
        return Values(result, counts)

    def _counts(self, lengths: list[Int32Array]) -> Int32Array:
        """How many values each row has: none where a variable is missing, else as many as the variables."""
        if all(each is one_per_row(len(each)) for each in lengths):
            return lengths[0]
        all_lengths = np.stack(lengths)
        counts = np.where((all_lengths == 0).any(axis=0), 0, all_lengths.max(axis=0)).astype(np.int32)
        unequal = (all_lengths != counts) & (all_lengths != 1) & (counts != 0)
        if unequal.any():
            row = int(np.argmax(unequal.any(axis=0)))
            found = " and ".join(str(length) for length in np.unique(all_lengths[:, row]))
            raise BadItem(row, None, f"variables of '{self.formula.text}' have {found} values")
        return counts

    def _filled(self, values: Values) -> Values:
        """NaN is a missing value; with fill_missing there is none."""
        numbers, lengths = np.asarray(values.items, np.float64), values.lengths
        if (missing := np.isnan(numbers)).any():
            numbers, lengths = numbers[~missing], sum_by_row(~missing, lengths)
        if self.fill_missing is not None and (empty := lengths == 0).any():
            numbers = np.insert(numbers, np.cumsum(lengths, dtype=np.int64)[empty], self.fill_missing)
            lengths = np.maximum(lengths, 1)
        return Values(numbers, lengths)


def _spread(values: Values, counts: Int32Array) -> Float64Array:
    """As many values in each row as `counts` says: a single one is repeated."""
    numbers = np.asarray(values.items)
    if values.lengths is counts or np.array_equal(values.lengths, counts):
        return numbers
    firsts = np.cumsum(values.lengths, dtype=np.int64) - values.lengths
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts, dtype=np.int64) - counts, counts)
    return np.asarray(numbers[np.repeat(firsts, counts) + within * np.repeat(values.lengths > 1, counts)])


def as_times(values: Values) -> Values:
    """Seconds since 1970 of dates, timestamps, and strings in ISO form; of other numbers nobody knows the unit."""
    items = values.items
    if isinstance(items, Strings):
        return replace(values, items=_parsed_times(items, values), time_unit=1)
    if not values.time_unit and len(items):
        problem = (
            "is a column of numbers, not of dates or times; write from_seconds(x), from_milliseconds(x) or "
        )
        raise BadItem(None, None, problem + "from_days(x) for a number x")
    return replace(values, items=items.astype(np.int64) * max(1, values.time_unit), time_unit=1)


def _parsed_times(strings: Strings, values: Values) -> Int64Array:
    distinct: Any = pc.dictionary_encode(to_arrow(strings))
    try:
        seconds = pc.cast(pc.cast(distinct.dictionary, pa.timestamp("us")), pa.timestamp("s"), safe=False)
        found = seconds.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # with a time zone, or not a time at all
        found = np.empty(len(distinct.dictionary), np.int64)
        for code, text in enumerate(distinct.dictionary.to_pylist()):
            try:
                time = datetime.fromisoformat(text.strip())
            except ValueError as error:
                first = int(np.argmax(distinct.indices.to_numpy() == code))
                problem = "is no date or time, such as 2024-12-31 or 2024-12-31 23:59:00"
                raise BadItem(row_of_value(values.lengths, first), text, problem) from error
            found[code] = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() // 1
    return np.asarray(found[distinct.indices.to_numpy()], np.int64)
