"""What a row costs: a column that says it, or the lengths of its sequences."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from penstock.batching.cost_expression import CostExpression
from penstock.batching.lengths import ArrowArray, SequenceLength, column_type
from penstock.config.errors import ConfigError, DataError

Costs = NDArray[Any]
"""One number per row: int64 where costs are whole numbers, else float64."""

_MOST_INT64 = np.iinfo(np.int64).max
_COMBINE = {"sum_of_lengths": np.add, "max_of_lengths": np.maximum}


class CostOf(Protocol):
    """Tells what each row of a batch costs."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        ...

    @property
    def name(self) -> str:
        """What errors call it: the column, or the expression."""
        ...

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that are not there or that cannot tell a cost."""
        ...

    def of(self, batch: pa.RecordBatch) -> Costs:
        """The cost of each row; below 0 or not a number where a row has none."""
        ...


def cost_of_column(column: str) -> "ColumnCost":
    """The numbers of a column are the costs."""
    return ColumnCost(column)


def cost_of_expression(
    expression: str, sequences: Mapping[str, SequenceLength] | None = None
) -> "LengthCost":
    """Costs computed from lengths, such as `sum_of_lengths(clicks, carts)`.

    `sequences` tells what a name of the expression stands for; another name is a column of lists, or of texts
    with `;` between their steps.
    """
    try:
        parsed = CostExpression.parse(expression)
    except ValueError as error:
        raise ConfigError.at("data_config.sample_cost", str(error)) from error
    known = sequences or {}
    return LengthCost(parsed, tuple(known.get(name) or SequenceLength(name) for name in parsed.names))


@dataclass(frozen=True, slots=True)
class ColumnCost:
    """The costs that stand in a column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """This column."""
        return (self.column,)

    @property
    def name(self) -> str:
        """The column."""
        return self.column

    def check(self, schema: pa.Schema) -> None:
        """The column must be there and hold numbers."""
        kind = column_type(schema, self.column)
        if not _is_number(kind):
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

    expression: CostExpression
    lengths: tuple[SequenceLength, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the sequences."""
        return tuple(dict.fromkeys(length.column for length in self.lengths))

    @property
    def name(self) -> str:
        """The expression."""
        return str(self.expression)

    def check(self, schema: pa.Schema) -> None:
        """The columns must be there and have lengths."""
        for length in self.lengths:
            length.check(schema)

    def of(self, batch: pa.RecordBatch) -> Costs:
        """The lengths of each row, put together; none is ever missing."""
        combine = _COMBINE[self.expression.function]
        return reduce(combine, (length.of(batch) for length in self.lengths))


def _is_number(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        kind = kind.value_type
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_null(kind))
