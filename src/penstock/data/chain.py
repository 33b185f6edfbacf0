"""What a Dataset is before it is read: a source, and what is done with its rows."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.nearest import hint
from penstock.config.sizes import format_size
from penstock.data.arguments import count_argument, flag_argument, kind_of, number_argument, own_words
from penstock.data.cut_cost import CostRules
from penstock.data.map_rows import MapStep
from penstock.data.row_cost import (
    FUNCTIONS,
    ColumnCost,
    CostOf,
    LengthCost,
    cost_of_column,
    cost_of_expression,
)
from penstock.data.sections import Oversize
from penstock.data.sources import Source
from penstock.readers.blocks import Shard
from penstock.readers.columns import is_list
from penstock.readers.survey import Survey


@dataclass(frozen=True, slots=True)
class Shuffling:
    """Rows are drawn from a buffer of so many bytes."""

    buffer_bytes: int
    seed: int


@dataclass(frozen=True, slots=True)
class ByRows:
    """Batches of a number of rows."""

    num_rows: int
    drop_remainder: bool = False


@dataclass(frozen=True, slots=True)
class ByCost:
    """Batches whose rows cost no more than a limit together."""

    cost: CostOf
    rules: CostRules


@dataclass(frozen=True, slots=True)
class Chain:
    """A source and everything that the methods of a Dataset said, each in its place on the way."""

    source: Source
    columns: tuple[str, ...] | None = None
    fills: Mapping[str, Any] = field(default_factory=dict)
    first_rows: int | None = None
    """Only so many rows of the source, in its order: `take` before `shuffle` and `shard`."""
    shard: Shard | None = None
    shuffling: Shuffling | None = None
    take_rows: int | None = None
    """Only so many rows of each epoch, as they come: `take` after `shuffle` or `shard`, before `batch`."""
    cut: ByRows | ByCost | None = None
    """None: elements are rows."""
    maps: tuple[MapStep, ...] = ()
    take_batches: int | None = None
    """Only so many batches of each epoch."""
    epochs: int | None = 1
    """None: without end."""
    take_in_all: int | None = None
    """Only so many elements in all epochs together: `take` after `epochs`."""
    prefetch_bytes: int | None = None
    memory_bytes: int | None = None

    def survey(self) -> Survey:
        """The rows and columns that are read: those that are given out, and those that tell the cost."""
        wanted = self.columns
        if wanted is not None and isinstance(self.cut, ByCost):
            wanted = tuple(dict.fromkeys([*wanted, *self.cut.cost.columns]))
        return self.source.survey(wanted, self.first_rows)

    def names(self) -> list[str]:
        """The columns that are given out, or that the first map gets."""
        return list(self.columns) if self.columns is not None else self.source.survey().columns.names


def row_cut(rows: Any, drop_remainder: Any, of_cost: Mapping[str, Any]) -> ByRows:
    """Batches of a number of rows; what only counts with a cost must not be given."""
    for name, value in of_cost.items():
        if value is not None:
            raise ConfigError.at(
                "batch", f"{name} counts only with cost=, the column that tells what a row costs"
            )
    return ByRows(
        count_argument("batch", rows, "give the number of rows, at least one, or cost= and limit="),
        flag_argument("batch", "drop_remainder", drop_remainder),
    )


def cost_cut(
    cost: CostOf, limit: Any, oversize: Any, max_rows: Any, null_cost: Any, drop_remainder: Any
) -> ByCost:
    """Batches that cost no more than a limit."""
    if limit is None or not math.isfinite(number_argument("batch", "limit", limit)):
        raise ConfigError.at("batch", f"limit is {limit}; say what a batch may cost at most")
    if oversize not in list(Oversize):
        raise ConfigError.at("batch", f"oversize is {oversize!r}; {hint(str(oversize), list(Oversize))}")
    if max_rows is not None:
        max_rows = count_argument("batch", max_rows, "max_rows is a number of rows, at least one")
    if null_cost is not None and isinstance(cost, LengthCost):
        raise ConfigError.at(
            "batch", "null_cost counts only with a column of costs; no length is ever missing"
        )
    if null_cost is not None:
        null_cost = number_argument("batch", "null_cost", null_cost)
    rules = (number_argument("batch", "limit", limit), max_rows, Oversize(oversize), null_cost)
    try:
        checked = CostRules(*rules, flag_argument("batch", "drop_remainder", drop_remainder))
    except ValueError as error:
        raise ConfigError.at("batch", str(error)) from error
    return ByCost(cost, checked)


def cost_of(cost: Any, source: Source) -> CostOf:
    """What a row costs: the number in a column, or an expression over lengths, as a run file may write it."""
    if not isinstance(cost, str):
        raise ConfigError.at("batch", f"cost is {kind_of(cost)}; give {_COSTS}")
    schema = source.survey().columns
    with own_words():
        is_column = cost in schema.names or "(" not in cost
        found = cost_of_column(cost) if is_column else cost_of_expression(cost)
    for name in found.columns:
        if name not in schema.names:
            raise source.no_column(name)
    try:
        found.check(schema)
    except DataError as error:
        advice = _advice(found, schema, source) if isinstance(found, ColumnCost) else ""
        raise DataError(f"{source.name}: {error}{advice}") from error
    return found


def _advice(cost: ColumnCost, schema: pa.Schema, source: Source) -> str:
    if is_list(schema.field(cost.column).type):
        return f"; for the length of its lists write cost='sum_of_lengths({cost.column})'"
    return source.advice_on_text(cost.column)


_COSTS = f"the name of a column, or {' or '.join(f'{name}(column, ...)' for name in FUNCTIONS)}"


def describe(chain: Chain) -> str:
    """What was said of a source, in the order in which rows pass it; nothing that only a look at the data tells."""
    parts = [chain.source.name, *_rows(chain), *_batches(chain), *_bytes(chain)]
    return f"Dataset({'; '.join(parts)})"


def _rows(chain: Chain) -> Iterator[str]:
    if chain.columns is not None:
        yield f"columns {', '.join(chain.columns)}"
    if chain.first_rows is not None:
        yield f"the first {chain.first_rows:,} rows"
    if chain.shard is not None:
        yield f"shard {chain.shard.index} of {chain.shard.count}"
    if chain.shuffling is not None:
        yield f"shuffled in {format_size(chain.shuffling.buffer_bytes)} with seed {chain.shuffling.seed}"
    if chain.take_rows is not None:
        yield f"{chain.take_rows:,} rows of each epoch"


def _batches(chain: Chain) -> Iterator[str]:
    if isinstance(chain.cut, ByRows):
        yield f"batches of {chain.cut.num_rows:,} rows"
    if isinstance(chain.cut, ByCost):
        yield f"batches of {chain.cut.cost.name} up to {chain.cut.rules.limit:g}"
    if chain.maps:
        yield "mapped" if len(chain.maps) == 1 else f"mapped {len(chain.maps)} times"
    if chain.take_batches is not None:
        yield f"{chain.take_batches:,} batches of each epoch"
    if chain.epochs != 1:
        yield "epochs without end" if chain.epochs is None else f"{chain.epochs} epochs"
    if chain.take_in_all is not None:
        yield f"{chain.take_in_all:,} in all"


def _bytes(chain: Chain) -> Iterator[str]:
    if chain.prefetch_bytes is not None:
        yield f"prefetched in {format_size(chain.prefetch_bytes)}"
    if chain.memory_bytes is not None:
        yield f"inside {format_size(chain.memory_bytes)}"
