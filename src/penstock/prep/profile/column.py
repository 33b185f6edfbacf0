"""What is known of one column, fed with its values block by block."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.features.hashes import value_hashes
from penstock.prep.profile.distinct import DistinctCount, FrequentValues, HashRuns
from penstock.prep.profile.order import RowOrder


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What the rows that were looked at say about a column. Of a list the items count, of a map the keys."""

    name: str
    type: pa.DataType
    num_rows: int
    num_nulls: int
    distinct: int
    distinct_is_exact: bool
    """False: `distinct` is an estimate."""
    least: Any
    most: Any
    mean_length: float | None
    """Items of a list or map, bytes of a text; None for other types."""
    length_range: tuple[int, int] | None
    """Of the shortest and of the longest value, where there is a length."""
    mean: float | None
    """Of numbers, NaN left out."""
    num_nan: int
    top: tuple[Any, float] | None
    """The most frequent value and its part of all, where one stands out."""
    order: RowOrder
    is_number_text: bool
    """Whether all texts, of which there is at least one, are numbers as a program would write them."""


class ColumnProfile:
    """Collects the facts of one column; what it holds does not grow with the rows."""

    def __init__(self, field: "pa.Field[Any]") -> None:
        self._name, self._type = field.name, field.type
        self._num_rows = self._num_nulls = self._num_nan = self._num_numbers = 0
        self._num_items = 0
        self._total_length: int | None = None
        self._length_range: tuple[int, int] | None = None
        self._sum = 0.0
        self._least: Any = None
        self._most: Any = None
        self._distinct, self._frequent, self._order = DistinctCount(), FrequentValues(), RowOrder()
        self._texts_seen, self._is_number_text = False, True

    def add(self, column: Any) -> None:
        """See some consecutive rows."""
        self._num_rows += len(column)
        self._num_nulls += column.null_count
        values = column.drop_null() if column.null_count else column
        if pt.is_dictionary(values.type):
            values = values.dictionary_decode()
        self._measure(values)
        if is_number(values.type):
            self._order.add(as_numbers(values))
        items = _items(values)
        if len(items):
            self._see(items)

    def facts(self) -> ColumnFacts:
        """Everything that is known now."""
        num_values = self._num_rows - self._num_nulls
        return ColumnFacts(
            name=self._name,
            type=self._type,
            num_rows=self._num_rows,
            num_nulls=self._num_nulls,
            distinct=min(self._distinct.count, self._num_items),
            distinct_is_exact=self._distinct.is_exact,
            least=self._least,
            most=self._most,
            mean_length=None if self._total_length is None else self._total_length / max(1, num_values),
            length_range=self._length_range,
            mean=self._sum / self._num_numbers if self._num_numbers else None,
            num_nan=self._num_nan,
            top=self._frequent.top(),
            order=self._order,
            is_number_text=self._texts_seen and self._is_number_text,
        )

    def _measure(self, values: Any) -> None:
        lengths: Any = None
        if is_text(values.type):
            lengths = pc.binary_length(values)
        elif pt.is_map(values.type):
            lengths = pc.list_value_length(values.cast(_as_list_type(values.type)))
        elif is_list(values.type):
            lengths = pc.list_value_length(values)
        if lengths is not None:
            self._total_length = (self._total_length or 0) + int(pc.sum(lengths).as_py() or 0)
            self._bound_lengths(lengths)

    def _bound_lengths(self, lengths: Any) -> None:
        if not len(lengths):
            return
        found: dict[str, Any] = pc.min_max(lengths).as_py()  # type: ignore[assignment]
        least, most = self._length_range or (found["min"], found["max"])
        self._length_range = min(least, found["min"]), max(most, found["max"])

    def _see(self, items: Any) -> None:
        self._num_items += len(items)
        hashes = value_hashes(items)
        runs = HashRuns.of(hashes)
        self._distinct.add(runs)
        self._frequent.add(items, hashes, runs)
        if pt.is_floating(items.type) or pt.is_integer(items.type) or pt.is_boolean(items.type):
            self._add_up(items)
        if is_text(items.type) and self._is_number_text:
            self._is_number_text = _are_numbers(items)
            self._texts_seen = True
        if _has_extremes(items.type):
            self._stretch(items)

    def _add_up(self, items: Any) -> None:
        numbers = as_numbers(items)
        num_nan = int(np.count_nonzero(np.isnan(numbers))) if pt.is_floating(items.type) else 0
        self._num_nan += num_nan
        self._num_numbers += len(numbers) - num_nan
        self._sum += float(np.nansum(numbers, dtype=np.float64) if num_nan else numbers.sum(dtype=np.float64))

    def _stretch(self, items: Any) -> None:
        found: dict[str, Any] = pc.min_max(items).as_py()  # type: ignore[assignment]
        if found["min"] is None or found["min"] != found["min"]:
            return
        self._least = found["min"] if self._least is None else min(self._least, found["min"])
        self._most = found["max"] if self._most is None else max(self._most, found["max"])


def is_number(kind: Any) -> bool:
    """Whether values are one number each, moments included."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or is_moment(kind))


def is_moment(kind: Any) -> bool:
    """Whether values are points in time."""
    return bool(pt.is_timestamp(kind) or pt.is_date(kind))


def is_text(kind: Any) -> bool:
    """Whether values are texts or bytes."""
    return bool(
        pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind)
    )


def is_list(kind: Any) -> bool:
    """Whether values have items."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def as_numbers(values: Any) -> Any:
    """NumPy numbers that compare as the values do."""
    if pt.is_date32(values.type):
        values = values.cast(pa.int32())
    elif is_moment(values.type):
        values = values.cast(pa.int64())
    elif pt.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return values.to_numpy(zero_copy_only=False)


def _items(values: Any) -> Any:
    """What is counted: values as they are, items of lists, lists within included, keys of maps."""
    while is_list(values.type) or pt.is_map(values.type):
        if pt.is_map(values.type):
            offsets = values.offsets
            first = offsets[0].as_py() if len(offsets) else 0
            last = offsets[-1].as_py() if len(offsets) else 0
            values = values.keys.slice(first, last - first)
        else:
            values = values.flatten()
    values = values.drop_null() if values.null_count else values
    return values.dictionary_decode() if pt.is_dictionary(values.type) else values


def _as_list_type(map_type: Any) -> pa.DataType:
    entry: Any = pa.struct(
        [pa.field("key", map_type.key_type, nullable=False), pa.field("value", map_type.item_type)]
    )
    return pa.list_(pa.field("entries", entry, nullable=False))


def _has_extremes(kind: Any) -> bool:
    return is_number(kind) or is_text(kind) or bool(pt.is_decimal(kind) or pt.is_time(kind))


def _are_numbers(texts: Any) -> bool:
    """Whether all texts are numbers; one with a leading zero is a code that must stay as it is."""
    has_code = pc.any(pc.match_substring_regex(texts, r"^[+-]?0[0-9]"))
    if has_code.as_py():
        return False
    number = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
    return bool(pc.all(pc.match_substring_regex(texts, number)).as_py())
