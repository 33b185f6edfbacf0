"""What every feature offers, where it finds its values, and the NumPy arrays that it gives.

B is the number of rows, V the number of values of all rows, D the width of a dense feature.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, DataError, hint
from penstock.features.sections import FgMode, ParsingSection
from penstock.features.sections.types import IdFeature, RawFeature, table_rows

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
NumberArray = NDArray[Any]


@dataclass(frozen=True, slots=True)
class SparseColumn:
    """Ids: `lengths[i]` of the values belong to row i, in order; a row may have none."""

    values: Int64Array
    lengths: Int32Array
    weights: Float32Array | None = None


@dataclass(frozen=True, slots=True)
class DenseColumn:
    """Numbers: the same count D in every row, as a (B, D) array."""

    values: Float32Array


Column = SparseColumn | DenseColumn


@lru_cache(maxsize=8)
def one_per_row(num_rows: int) -> Int32Array:
    """The lengths of a column with one value in every row: one 1, seen as often as there are rows.

    It is read-only, takes no memory for its rows, and is the same object for all such columns.
    """
    return np.broadcast_to(np.ones(1, np.int32), num_rows)


def row_of_value(lengths: Int32Array, index: int) -> int:
    return int(np.searchsorted(np.cumsum(lengths, dtype=np.int64), index, side="right"))


def sum_by_row(counts: NumberArray, lengths: Int32Array) -> Int32Array:
    """Sums the counts of the values of each row: lengths once some values became none or several."""
    totals = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=totals[1:])
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.asarray(totals[ends] - totals[ends - lengths], np.int32)


class BadValue(DataError):
    """One value of a batch is wrong. `row` counts from the first row of the batch."""

    def __init__(self, column: str, row: int | None, value: object, problem: str) -> None:
        self.column = column
        self.row = row
        self.value = value
        self.problem = problem
        position = "" if row is None else f"row {row} of the batch: "
        subject = "" if value is None else f"value {value!r} "
        super().__init__(f"{position}column '{column}': {subject}{problem}")


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The embedding table that a sparse feature looks its ids up in; features share one by its name."""

    name: str
    num_rows: int
    dim: int
    pooling: str = "sum"
    init_fn: str | None = None
    trainable: bool = True
    data_type: str = "FP32"
    weighted: bool = False


class Feature(Protocol):
    """Turns columns of a record batch into one column of ids or numbers."""

    @property
    def name(self) -> str:
        """The feature's name in the run file; keys of tensors carry it."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The data columns that `parse` reads."""

    @property
    def table(self) -> TableSpec | None:
        """The embedding table of a sparse feature; None for a dense one."""

    @property
    def width(self) -> int:
        """Numbers per row of a dense feature; 0 for a sparse one."""

    @property
    def reads_text(self) -> bool:
        """Whether values count as they are written, so that 02134 and 2134 are two."""

    def parse(self, batch: pa.RecordBatch | pa.Table) -> Column:
        """The feature's values in every row of the batch. A value that cannot be used raises BadValue."""


_SIDES = ("user", "item", "context")
_LATER_SIDES = ("feature", "const")


@dataclass(frozen=True, slots=True)
class FeatureInput:
    column: str
    separator: bytes
    default: str | None
    """What stands in for a missing value; None: nothing does."""

    default_option: str
    """The option that sets the default, for messages."""

    encoded: bool
    """FG_NONE: the column holds ids and numbers that need no further work."""


def input_and_table(
    config: IdFeature | RawFeature, parsing: ParsingSection
) -> tuple[FeatureInput, TableSpec | None]:
    """Where a feature of one column finds its values, and the table for its ids, where it has ids."""
    if parsing.resolved_fg_mode() is FgMode.FG_NONE:
        source = FeatureInput(
            config.feature_name,
            parsing.fg_encoded_multival_sep.encode(),
            config.fg_encoded_default_value or None,
            "fg_encoded_default_value",
            encoded=True,
        )
    else:
        expression = config.expression
        side, colon, column = expression.partition(":")
        if side in _LATER_SIDES and colon:
            problem = f": the side '{side}' is not available yet"
        elif colon and not column:
            problem = " names no column; write side:column, such as user:age"
        elif colon and side not in _SIDES:
            problem = f": unknown side '{side}'; {hint(side, _SIDES)}"
        else:
            problem = ""
        if problem:
            raise ConfigError.at("expression", f"'{expression}'{problem}")
        column = column or expression or config.feature_name
        default = config.default_value or None
        source = FeatureInput(column, config.separator.encode(), default, "default_value", encoded=False)
    num_rows = table_rows(config)
    if num_rows is None or config.embedding_dim is None:
        return source, None
    table = TableSpec(
        name=config.embedding_name or f"{config.feature_name}_emb",
        num_rows=num_rows,
        dim=config.embedding_dim,
        pooling=config.pooling,
        init_fn=config.init_fn,
        trainable=config.trainable,
        data_type=config.data_type,
        weighted=isinstance(config, IdFeature) and config.weighted,
    )
    return source, table
