"""How a Dataset is cut into batches, from what `.batch` is given."""

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.batching.cost_expression import FUNCTIONS
from penstock.batching.costs import ColumnCost, CostOf, LengthCost, cost_of_column, cost_of_expression
from penstock.batching.pricing import CostRules
from penstock.batching.sections import Oversize
from penstock.config.errors import ConfigError, DataError
from penstock.config.nearest import hint
from penstock.pipeline.dataset.arguments import count_argument, flag_argument, kind_of, number_argument
from penstock.pipeline.dataset.chain import ByCost, ByRows
from penstock.pipeline.dataset.sources import Source
from penstock.pipeline.dataset.wording import own_words
from penstock.readers.columns import is_list


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
