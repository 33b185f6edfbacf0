"""What the methods of a Dataset are given, checked where it is given."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.batching.pricing import CostRules
from penstock.batching.sections import Oversize
from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.config.sizes import parse_size
from penstock.pipeline.dataset.arrow_to_numpy import leaf_type
from penstock.pipeline.dataset.chain import ByCost, ByRows


def size_argument(method: str, size: int | str) -> int:
    """The bytes that an argument such as "64MiB" or 65536 means."""
    try:
        num_bytes = parse_size(size) if isinstance(size, str) else int(size)
    except (ValueError, TypeError) as error:
        raise ConfigError.at(
            method, f"is {size!r}; expected a size such as '64MiB' or a number of bytes"
        ) from error
    if num_bytes < 1:
        raise ConfigError.at(method, f"is {size}; a size is at least one byte")
    return num_bytes


def count_argument(method: str, count: Any, advice: str) -> int:
    """A whole number of at least one."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ConfigError.at(method, f"is {count!r}; {advice}")
    return int(count)


def row_cut(rows: int | None, drop_remainder: bool, of_cost: Mapping[str, Any]) -> ByRows:
    """Batches of a number of rows; what only counts with a cost must not be given."""
    for name, value in of_cost.items():
        if value is not None:
            raise ConfigError.at(
                "batch", f"{name} counts only with cost=, the column that tells what a row costs"
            )
    return ByRows(
        count_argument("batch", rows, "give the number of rows, at least one, or cost= and limit="),
        drop_remainder,
    )


def cost_cut(
    cost: str,
    limit: float | None,
    oversize: str | Oversize,
    max_rows: int | None,
    null_cost: float | None,
    drop_remainder: bool,
) -> ByCost:
    """Batches that cost no more than a limit."""
    if limit is None or not math.isfinite(limit):
        raise ConfigError.at("batch", f"limit is {limit}; say what a batch may cost at most")
    if oversize not in list(Oversize):
        raise ConfigError.at("batch", f"oversize is {oversize!r}; {hint(str(oversize), list(Oversize))}")
    try:
        CostRules(limit, max_rows, Oversize(oversize), null_cost, drop_remainder)
    except ValueError as error:
        raise ConfigError.at("batch", str(error)) from error
    return ByCost(cost, limit, Oversize(oversize), max_rows, null_cost, drop_remainder)


def check_fill(name: str, kind: Any, value: Any) -> None:
    """Refuse a value that a column cannot hold."""
    try:
        pa.scalar(value, leaf_type(kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        raise ConfigError.at(
            "fill_nulls", f"{value!r} is no value of column '{name}', which is {kind}"
        ) from error
