"""What a row costs: a column that says it, or the lengths of its sequences."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from penstock.config.errors import DataError, hint
from penstock.readers.columns import ArrowArray, is_list
from penstock.readers.order import Int64Array
from penstock.readers.stream import ROW_COLUMN

FUNCTIONS = {
    "sum_of_lengths": "the lengths of all sequences added up: what grows with every step of every sequence",
    "max_of_lengths": "the length of the longest sequence: what grows with the padded width",
}
"""What an expression may call, and what it gives."""

_CALL = re.compile(r"\s*(?P<function>\w+)\s*\((?P<names>[^()]*)\)\s*")
_EXAMPLE = "write it like sum_of_lengths(clicks, carts)"


@dataclass(frozen=True, slots=True)
class SequenceLength:
    """The length of one column's sequences: elements of a list, or steps of a text.

    A row without a value has no steps. `longest` is where the feature cuts its sequences: steps past it cost
    nothing.
    """

    column: str
    separator: str = ";"
    """Between the steps, where the column is text."""
    longest: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, schema: pa.Schema) -> None:
        kind = _column_type(schema, self.column)
        values = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
        if not (is_list(values) or values in _TEXTS or pt.is_map(values)):
            raise DataError.at(
                f"is of type {kind}; only lists and texts of several steps have a length", column=self.column
            )

    def of(self, batch: pa.RecordBatch) -> Int64Array:
        lengths = _lengths(batch.column(self.column), self.separator)
        return lengths if self.longest is None else np.minimum(lengths, self.longest)


def _column_type(schema: pa.Schema, column: str) -> pa.DataType:
    index = schema.get_field_index(column)
    if index < 0:
        known = [name for name in schema.names if name != ROW_COLUMN]
        raise DataError(f"there is no column '{column}'; {hint(column, known)}")
    kind: pa.DataType = schema.field(index).type
    return kind


def _lengths(array: ArrowArray, separator: str) -> Int64Array:
    if pt.is_dictionary(array.type):
        of_words = pa.array(_lengths(array.dictionary, separator))
        lengths: ArrowArray = of_words.take(array.indices)
    elif array.type in _TEXTS:
        lengths = _steps(array, separator)
    elif pt.is_map(array.type):
        entry = pa.struct([array.type.key_field.with_nullable(False), array.type.item_field])
        entries: ArrowArray = pc.cast(array, pa.list_(entry))
        lengths = pc.list_value_length(entries)
    else:
        lengths = pc.list_value_length(array)
    if lengths.null_count:
        lengths = lengths.fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _steps(texts: ArrowArray, separator: str) -> ArrowArray:
    """Steps of each text: one more than it has separators; an empty text has none."""
    if pt.is_string_view(texts.type) or pt.is_binary_view(texts.type):
        texts = pc.cast(texts, pa.large_binary())
    num_bytes: ArrowArray = pc.binary_length(texts)
    has_steps: ArrowArray = pc.cast(pc.greater(num_bytes, pa.scalar(0, num_bytes.type)), pa.int64())
    if not separator:
        return has_steps
    num_separators: ArrowArray = pc.count_substring(texts, separator)
    return pc.add(has_steps, num_separators)


_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_TEXTS = (*_STRINGS, pa.binary(), pa.large_binary(), pa.binary_view())


Costs = NDArray[Any]
"""One number per row: int64 where costs are whole numbers, else float64."""

_MOST_INT64 = np.iinfo(np.int64).max
_COMBINE = {"sum_of_lengths": np.add, "max_of_lengths": np.maximum}


@dataclass(frozen=True, slots=True)
class ColumnCost:
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def name(self) -> str:
        return self.column

    def check(self, schema: pa.Schema) -> None:
        kind = _column_type(schema, self.column)
        value = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
        if not (pt.is_integer(value) or pt.is_floating(value) or pt.is_decimal(value) or pt.is_null(value)):
            raise DataError.at(f"is of type {kind}; a cost is a number", column=self.column)

    def of(self, batch: pa.RecordBatch) -> Costs:
        """The numbers of the column, exact: whole numbers stay whole, however small their type."""
        array: ArrowArray = batch.column(self.column)
        kind = array.type.value_type if pt.is_dictionary(array.type) else array.type
        if pt.is_uint64(kind):
            # A number past int64 is past every limit too, and stays so as the largest of int64.
            array = pc.min_element_wise(pc.cast(array, kind), pa.scalar(_MOST_INT64, kind), skip_nulls=False)
        whole = pt.is_integer(kind)
        array = pc.cast(array, pa.int64() if whole else pa.float64())
        if array.null_count:
            array = array.fill_null(-1 if whole else np.nan)
        return np.asarray(array.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class LengthCost:
    """Costs computed from the lengths of sequences; a row without a sequence costs nothing."""

    function: str
    name: str
    """The expression."""
    lengths: tuple[SequenceLength, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(length.column for length in self.lengths))

    def check(self, schema: pa.Schema) -> None:
        for length in self.lengths:
            length.check(schema)

    def of(self, batch: pa.RecordBatch) -> Costs:
        combine = _COMBINE[self.function]
        return reduce(combine, (length.of(batch) for length in self.lengths))


CostOf: TypeAlias = ColumnCost | LengthCost
"""What each row of a batch costs; below 0 or not a number where a row has no cost."""


def cost_of_expression(expression: str, sequences: Mapping[str, SequenceLength] | None = None) -> LengthCost:
    """Costs computed from lengths, such as `sum_of_lengths(clicks, carts)`; ValueError says what is wrong with it.

    `sequences` tells what a name of the expression stands for; another name is a column of lists, or of texts
    with `;` between their steps.

    >>> cost_of_expression("sum_of_lengths(clicks,carts)").name
    'sum_of_lengths(clicks, carts)'
    """
    call = _CALL.fullmatch(expression)
    if call is None:
        raise ValueError(f"'{expression}' is no expression over lengths; {_EXAMPLE}")
    function = call["function"]
    if function not in FUNCTIONS:
        raise ValueError(f"there is no function '{function}'; {hint(function, FUNCTIONS)}")
    names = [name.strip() for name in call["names"].split(",")]
    if not all(names):
        raise ValueError(f"'{expression}' lacks the name of a sequence; {_EXAMPLE}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{expression}' names '{twice}' twice")
    known = sequences or {}
    lengths = tuple(known.get(name) or SequenceLength(name) for name in names)
    return LengthCost(function, f"{function}({', '.join(names)})", lengths)
