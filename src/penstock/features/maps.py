"""Entries of key and value, as strings and map columns have them: taken apart, and found by their keys.

Types of features that look something up share this: lookup, match, kv_dot_product, overlap.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penstock.features.strings import as_numbers, as_strings
from penstock.features.values import (
    BadItem,
    BoolArray,
    Bytes,
    Int32Array,
    Int64Array,
    NumberArray,
    Strings,
    Values,
    one_per_row,
    row_of_value,
)


class Entries(NamedTuple):
    """Entries of all rows. Of several with one key in a row, lookups find the first."""

    keys: Values
    values: Strings | NumberArray
    has_value: BoolArray
    """False: the entry is a key alone."""

    @property
    def are_present(self) -> BoolArray:
        """Whether entries have a value that is not empty, or null."""
        if isinstance(self.values, Strings):
            return self.values.ends > self.values.starts
        return ~np.isnan(self.values)

    def strings(self, indices: NumberArray) -> Strings:
        """Values as they are written."""
        if isinstance(self.values, Strings):
            return self.values.take(indices)
        return strings_in(as_strings(Values(self.values[indices], one_per_row(len(indices)))))

    def vectors(
        self, indices: NumberArray, lengths: Int32Array, separator: str = "", width: int = 1
    ) -> NumberArray:
        """`width` numbers of each value, as (values, width); `lengths` counts the values of each row, for messages."""
        if not isinstance(self.values, Strings):
            if width > 1:
                raise BadItem(None, None, f"is a map to single numbers; value_dim is {width}")
            return self.values[indices][:, None]
        strings = self.values.take(indices)
        try:
            values = as_numbers(Values(strings, one_per_row(len(strings)), separators=(separator.encode(),)))
        except BadItem as error:
            raise error.of(lengths) from error
        numbers, wrong = values.items, values.lengths != width
        assert not isinstance(numbers, Strings)
        if wrong.any():
            index = int(np.argmax(wrong))
            problem = f"has {values.lengths[index]} numbers; value_dim is {width}"
            problem = problem if width > 1 else "is not a number"
            raise BadItem(row_of_value(lengths, index), strings[index], problem)
        return numbers.reshape(-1, width)


def entries_of(values: Values, delimiter: str = ":", *, last: bool = False) -> Entries:
    """Each string taken apart at its first delimiter, or at its last; one of a map column at the end of its key."""
    from penstock.features import map_kernels

    numbers, values = values.weights, as_strings(values)
    if numbers is not None:
        return Entries(replace(values, weights=None), numbers, np.ones(len(numbers), np.bool_))
    strings = strings_in(values)
    key_ends, value_starts = np.empty(len(strings), np.int64), np.empty(len(strings), np.int64)
    mark: Bytes = np.frombuffer(delimiter.encode(), np.uint8)
    map_kernels.find_delimiters(
        (strings.data, strings.starts, strings.ends), mark, last, key_ends, value_starts
    )
    has_value = key_ends < strings.ends
    keys = Values(Strings(strings.data, strings.starts, key_ends), values.lengths)
    return Entries(keys, Strings(strings.data, value_starts, strings.ends), has_value)


def pairs_of(values: Values, delimiter: str = ":", source: int = 0) -> Entries:
    """The same, where every entry has a value; one that is a key alone raises BadItem."""
    entries = entries_of(values, delimiter)
    if not entries.has_value.all():
        index = int(np.argmin(entries.has_value))
        entry, row = strings_in(entries.keys)[index], row_of_value(entries.keys.lengths, index)
        raise BadItem(row, entry, f"is no entry of a map: key{delimiter}value", source)
    return entries


def find(keys: Values, entries: Values) -> Int64Array:
    """For each key the index of the first equal entry of its row, or -1."""
    from penstock.features import map_kernels

    wanted, known = strings_in(keys), strings_in(entries)
    found = np.empty(len(wanted), np.int64)
    most = int(entries.lengths.max()) if len(entries.lengths) else 0
    slots = np.empty(1 << max(4, (2 * most - 1).bit_length()), np.int64)
    map_kernels.find_keys(
        (wanted.data, wanted.starts, wanted.ends),
        np.cumsum(keys.lengths, dtype=np.int64),
        (known.data, known.starts, known.ends),
        np.cumsum(entries.lengths, dtype=np.int64),
        slots,
        found,
    )
    return found


def strings_in(values: Values) -> Strings:
    assert isinstance(values.items, Strings)
    return values.items
