"""What the columns of a run hold: values without a row of their own, rows without a value, and kinds of values.

A model is used on other data than it was trained on. Values that it does not know are counted there, per feature. And a
column of numbers where there were strings in training has other ids throughout, since "138.0" and "0138" are not 138;
so the kind of every column is kept with the model.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.readers.columns import ArrowArray, is_list

NOT_IN_VOCABULARY = "not in its vocabulary"


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """Of one feature, over some rows."""

    rows: int
    missing: int
    """Rows without a value of their own."""
    values: int
    unknown: int
    """Values outside of the vocabulary, or of the rows of the table."""
    outside: str
    """What an unknown value is, such as "outside 0 to 99"."""

    def __add__(self, other: Self) -> "ValueCounts":
        return ValueCounts(
            self.rows + other.rows,
            self.missing + other.missing,
            self.values + other.values,
            self.unknown + other.unknown,
            self.outside,
        )

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(1, self.values)

    @property
    def missing_share(self) -> float:
        return self.missing / max(1, self.rows)


def add_counts(total: dict[str, ValueCounts], more: Mapping[str, ValueCounts]) -> None:
    """Add the counts of a batch, by feature, to those of the batches before."""
    for name, counts in more.items():
        total[name] = total[name] + counts if name in total else counts


# --- Kinds -----------------------------------------------------------------------------------------------

NUMBER, STRING, INTEGER_STRING = "number", "string", "integer string"
"""Integers and whole floats are one kind. A string that is an integer as programs write it has the id of the number."""
_INTEGER = "(0|-?[1-9][0-9]*)"


def kind_of(
    array: ArrowArray, separators: Sequence[str] = (), weighted: bool = False
) -> tuple[str, object] | None:
    """The kind of the values of a column, and one that shows it; None where there are no values.

    Strings hold several values with separators between them, and weights behind a colon where they are `weighted`.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    while is_list(array.type) or pt.is_map(array.type) or pt.is_dictionary(array.type):
        if pt.is_dictionary(array.type):
            array = array.dictionary
        elif pt.is_map(array.type):
            array = array.keys
        else:
            array = array.flatten()
    kind = array.type
    is_string = any(check(kind) for check in _IS_STRING)
    if is_string:
        flat: ArrowArray = pc.cast(array, pa.large_binary())  # Arrow can select no rows of views
        array = flat.drop_null()
        sizes: ArrowArray = pc.binary_length(array)
        array = array.filter(pa.array(sizes.to_numpy() > 0))
    else:
        array = array.drop_null()
    if pt.is_floating(kind):
        array = array.filter(pc.invert(pc.is_nan(array)))
    if not len(array):
        return None
    if not is_string:
        name = "date" if pt.is_date(kind) else "timestamp" if pt.is_timestamp(kind) else NUMBER
        return name, array[0].as_py()
    piece = f"({_INTEGER}{'(:[^:]*)?' if weighted else ''})?"
    between = "|".join(re.escape(separator) for separator in separators if separator)
    pattern = f"^{piece}(({between}){piece})*$" if between else f"^{piece}$"
    others = array.filter(pc.invert(pc.match_substring_regex(array, pattern)))
    shown = (others if len(others) else array)[0].as_py().decode(errors="replace")
    return STRING if len(others) else INTEGER_STRING, shown


_IS_STRING = (
    *(pt.is_string, pt.is_large_string, pt.is_string_view),
    *(pt.is_binary, pt.is_large_binary, pt.is_binary_view),
)


def joined_kind(first: str | None, second: str) -> str:
    """The kind of a column of which some rows are of one kind, and some of another that may stand beside it."""
    if INTEGER_STRING in (first, second):
        return second if first in (None, INTEGER_STRING) else first
    return first or second


def may_differ(trained: str, present: str) -> bool:
    """Whether equal values of these two kinds have different ids."""
    return trained != present and {trained, present} not in (
        {NUMBER, INTEGER_STRING},
        {STRING, INTEGER_STRING},
    )
