"""Rows and what they cost: rows without a usable cost, and rows that cost too much, are dealt with here."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.batching.costs import CostOf, Costs
from penstock.batching.cutting import MOST_LIMIT, is_over
from penstock.batching.sections import Oversize
from penstock.config.errors import DataError
from penstock.readers.blocks import Int64Array
from penstock.readers.origin import ROW_COLUMN, locate
from penstock.readers.sequence import BoolArray

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CostRules:
    """How batches are cut by cost."""

    limit: float
    """Most that the rows of a batch may cost together."""
    max_batch_rows: int | None = None
    """Most rows of a batch."""
    oversize: Oversize = Oversize.alone
    """What happens to a row that alone costs more than the limit."""
    null_cost: float | None = None
    """What a row costs whose own cost is null, negative or not finite; None: it is an error."""
    drop_remainder: bool = False
    """Leave out the last batch where more would have fitted into it."""

    def __post_init__(self) -> None:
        if not 0 < self.limit <= MOST_LIMIT:
            raise ValueError(f"a batch may cost more than 0 and at most 2**62, not {self.limit}")
        if self.max_batch_rows is not None and self.max_batch_rows < 1:
            raise ValueError(f"a batch needs at least one row, not {self.max_batch_rows}")
        if self.null_cost is not None and not 0 <= self.null_cost < np.inf:
            raise ValueError(f"the cost of a row without one is a number from 0 on, not {self.null_cost}")


@dataclass(frozen=True, slots=True)
class PricedRows:
    """Rows of a source that will be given out, and their costs."""

    rows: pa.RecordBatch
    costs: Costs
    first_row: int
    """The number of the first row that arrived, kept or not, among all of the source."""
    kept: Int64Array | None = None
    """Which of the rows that arrived these are; None: all."""
    oversize: BoolArray | None = None
    """Which of these rows cost more than a batch may; None: none does."""

    def end_row(self, num_rows: int) -> int:
        """The row of the source after the last of so many of these rows."""
        return self.first_row + (num_rows if self.kept is None else int(self.kept[num_rows - 1]) + 1)

    def num_oversize(self, start: int, end: int) -> int:
        """Rows of a part of these that cost more than a batch may."""
        return 0 if self.oversize is None else int(np.count_nonzero(self.oversize[start:end]))


class Pricing:
    """Prices the rows of a stream; warns once of rows that cost too much."""

    def __init__(
        self, cost: CostOf, rules: CostRules, file_paths: Sequence[str], quiet: bool = False
    ) -> None:
        self._cost = cost
        self._rules = rules
        self._file_paths = file_paths
        self._has_warned = quiet

    def price(self, batch: pa.RecordBatch, first_row: int) -> PricedRows:
        """The rows of a batch that are to be given out, with their costs."""
        costs = self._usable_costs(batch)
        oversize = is_over(costs, self._rules.limit)
        if not oversize.any():
            return PricedRows(batch, costs, first_row)
        self._tell_of_oversize(batch, costs, int(np.argmax(oversize)))
        if self._rules.oversize is Oversize.alone:
            return PricedRows(batch, costs, first_row, oversize=oversize)
        kept = ~oversize
        return PricedRows(batch.filter(pa.array(kept)), costs[kept], first_row, np.flatnonzero(kept))

    def _usable_costs(self, batch: pa.RecordBatch) -> Costs:
        """Costs that are finite and not negative."""
        costs, null_cost = self._cost.of(batch), self._rules.null_cost
        if null_cost is not None and not float(null_cost).is_integer():
            costs = costs.astype(np.float64)
        usable = (costs >= 0) & (costs < np.inf)
        if usable.all():
            return costs
        if null_cost is None:
            raise self._no_cost(batch, int(np.argmin(usable)))
        return np.where(usable, costs, np.asarray(null_cost, costs.dtype))

    def _no_cost(self, batch: pa.RecordBatch, row: int) -> DataError:
        """A cost is missing only where it stands in a column, since no length ever is."""
        [column] = self._cost.columns
        value = batch.column(column)[row].as_py()
        problem = "is null" if value is None else "is not a cost: it must be a finite number from 0 on"
        file, file_row = self._origin(batch, row)
        advice = "correct the file, or set data_config.null_cost"
        return DataError.at(f"{problem}; {advice}", file=file, row=file_row, column=column, value=value)

    def _tell_of_oversize(self, batch: pa.RecordBatch, costs: Costs, row: int) -> None:
        """An error, or a warning the first time."""
        file, file_row = self._origin(batch, row)
        rules = self._rules
        problem = f"costs {costs[row]} but a batch may cost {rules.limit:g}"
        if rules.oversize is Oversize.error:
            advice = "raise data_config.batch_cost_size, or set data_config.oversize to alone or drop"
            raise DataError.at(f"{problem}; {advice}", file=file, row=file_row, column=self._cost.name)
        if not self._has_warned:
            self._has_warned = True
            fate = "is a batch of its own" if rules.oversize is Oversize.alone else "is left out"
            message = DataError.at(f"{problem}", file=file, row=file_row, column=self._cost.name)
            logger.warning("%s; such a row %s (data_config.oversize)", message, fate)

    def _origin(self, batch: pa.RecordBatch, row: int) -> tuple[str, int]:
        """The file and the row there; the file's number where no paths were given."""
        file_index, file_row = locate(batch.column(ROW_COLUMN)[row].as_py())
        known = file_index < len(self._file_paths)
        return self._file_paths[file_index] if known else f"file {file_index}", file_row
