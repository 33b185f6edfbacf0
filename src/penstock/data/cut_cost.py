"""Cut a stream into batches whose rows cost no more than a limit together."""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import format_size
from penstock.data.row_cost import CostOf, Costs
from penstock.data.sections import Oversize
from penstock.data.stage import Stage, join
from penstock.data.window import own_bytes
from penstock.readers.blocks import Int64Array
from penstock.readers.origin import ROW_COLUMN, locate
from penstock.readers.sequence import BoolArray
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import Share

logger = logging.getLogger(__name__)

MOST_LIMIT = 2**62
"""Past it, whole numbers could not be added up exactly."""
_LEAST_LOOK_ROWS = 16


def is_over(costs: Costs, limit: float) -> NDArray[np.bool_]:
    """Which of these are more than the limit; whole numbers are compared as whole numbers."""
    return np.asarray(costs > (math.floor(limit) if costs.dtype == np.int64 else limit))


class Cutter:
    """Ends a batch before the first row with which it would cost more than the limit, or have too many rows.

    Costs are added one after another from the first row of a batch on, so that the sum of floating costs is the same
    however the rows arrive. A row that alone costs more than the limit is a batch of its own.
    """

    def __init__(self, limit: float, max_rows: int | None) -> None:
        self._limit = limit
        self._max_rows = max_rows
        self._num_rows = 0
        self._total: float = 0
        self._usual_rows = 0

    @property
    def is_full(self) -> bool:
        """Whether the rows that wait cost as much as they may."""
        return self._total >= self._limit

    def ends(self, costs: Costs) -> Iterator[int]:
        """The rows of a chunk before which a batch ends: 0 ends the one that was open when the chunk arrived.

        Rows after the last end stay open. There is one turn for each batch, not for each row, and a row is added up
        a few times at most.
        """
        start = 0
        while start < len(costs):
            looked_at = costs[start : start + self._rows_to_look_at()]
            num_fitting = self._take_fitting(looked_at)
            start += num_fitting
            if num_fitting == len(looked_at) and self._num_rows != self._max_rows:
                continue
            if not self._num_rows:
                self._num_rows = 1
                start += 1
            self._usual_rows = self._num_rows
            self._num_rows, self._total = 0, 0
            yield start

    def _rows_to_look_at(self) -> int:
        """About as many as the last batch had, and twice as many each time that this was not enough."""
        num_rows = max(_LEAST_LOOK_ROWS, 2 * self._usual_rows, self._num_rows)
        return num_rows if self._max_rows is None else min(num_rows, self._max_rows - self._num_rows)

    def _take_fitting(self, costs: Costs) -> int:
        """Add the longest prefix of these rows that fits, and say how many they are."""
        sums = costs.copy()
        sums[:1] += self._total
        np.cumsum(sums, out=sums)
        # The first sum that leaves int64 comes out negative, and is above every limit when read without a sign.
        over = (
            is_over(sums, self._limit) if sums.dtype != np.int64 else _is_over_or_wrapped(sums, self._limit)
        )
        num_fitting = int(np.argmax(over)) if over.any() else len(costs)
        self._num_rows += num_fitting
        if num_fitting:
            self._total = sums[num_fitting - 1].item()
        return num_fitting


def _is_over_or_wrapped(sums: NDArray[np.int64], limit: float) -> NDArray[np.bool_]:
    return np.asarray(sums.view(np.uint64) > math.floor(limit))


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


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows that a batch takes from the source, and how far the source is consumed with them."""

    pieces: list[pa.RecordBatch]
    num_rows: int
    end_row: int
    """The row of the source at which the next batch begins."""
    num_oversize: int
    """Rows of the source that alone cost too much, in the batch or left out."""


class OpenBatch:
    """Collects the rows of one batch after the other; in a `with` block, so that no byte stays leased."""

    def __init__(self, first_row: int, share: Share | None) -> None:
        self._share = share
        self._num_kept = 0
        self._leased_bytes = 0
        self._begin(first_row)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give all bytes back; a second time does nothing."""
        if self._share is not None and self._leased_bytes:
            self._share.release(self._leased_bytes)
            self._leased_bytes = 0

    def add(self, priced: PricedRows, start: int, end: int) -> None:
        """Take more rows, as a view."""
        if start < end:
            self._pieces.append(priced.rows.slice(start, end - start))
            self._num_rows += end - start
            self._end_row = priced.end_row(end)
            self._num_alone += priced.num_oversize(start, end)

    def keep(self) -> None:
        """Lease what waits while the source makes its next chunk."""
        if self._share is None or self._num_kept == len(self._pieces):
            return
        num_bytes = sum(
            own_bytes(column) for piece in self._pieces[self._num_kept :] for column in piece.columns
        )
        total_bytes = self._leased_bytes + num_bytes
        if total_bytes > self._share.limit_bytes:
            raise BudgetExceeded(
                f"{self._num_rows} rows take {format_size(total_bytes)} and do not fill a batch yet, but "
                f"{self._share.name} may hold {format_size(self._share.limit_bytes)}; set "
                "data_config.max_batch_rows, or lower data_config.batch_cost_size"
            )
        self._share.acquire(num_bytes)
        self._leased_bytes = total_bytes
        self._num_kept = len(self._pieces)

    def close(self) -> Portion:
        """The rows of the batch; rows that were left out since the one before it count as consumed with them."""
        num_left_out = self._end_row - self._first_row - self._num_rows
        portion = Portion(self._pieces, self._num_rows, self._end_row, self._num_alone + num_left_out)
        self.release()
        self._begin(self._end_row)
        return portion

    def close_last(self, end_row: int, is_wanted: bool) -> Portion:
        """The last rows, or none of them; with rows that were left out at the end of the source."""
        self._end_row = end_row
        portion = self.close()
        return portion if is_wanted else Portion([], 0, end_row, portion.num_oversize)

    def _begin(self, first_row: int) -> None:
        self._pieces: list[pa.RecordBatch] = []
        self._num_rows = 0
        self._num_alone = 0
        self._first_row = self._end_row = first_row
        self._num_kept = 0


_logger = logging.getLogger(__name__)


def cut_by_cost(
    source: RecordStream,
    cost: CostOf,
    limit: float,
    *,
    max_batch_rows: int | None = None,
    oversize: Oversize = Oversize.alone,
    null_cost: float | None = None,
    drop_remainder: bool = False,
    file_paths: Sequence[str] = (),
    share: Share | None = None,
) -> "CostCut":
    """Batches of as many consecutive rows as cost no more than `limit` together, however the source gives them.

    A batch ends before the first row that does not fit, and never skips one to fit a later one. The rows of an open
    batch are views of the source's; those that wait for the next chunk are leased from the share, so that rows
    that cost nothing cannot fill the memory. `file_paths` are for messages.
    """
    rules = CostRules(limit, max_batch_rows, Oversize(oversize), null_cost, drop_remainder)
    return CostCut(source, cost, rules, file_paths, share)


@dataclass(frozen=True, slots=True)
class CutCount:
    """What cutting a stream gives."""

    num_batches: int = 0
    num_rows: int = 0
    """Rows of all batches."""
    most_rows: int = 0
    """Rows of the batch that has most."""
    num_oversize: int = 0
    """Rows that alone cost more than the limit; they are in the batches unless such rows are dropped."""


class CostCut(Stage):
    """The stream that `cut_by_cost` gives; a place may go on with another limit."""

    def __init__(
        self,
        source: RecordStream,
        cost: CostOf,
        rules: CostRules,
        file_paths: Sequence[str] = (),
        share: Share | None = None,
    ) -> None:
        cost.check(source.schema)
        super().__init__(source)
        self._cost = cost
        self._rules = rules
        self._file_paths = file_paths
        self._share = share
        self._pricing = Pricing(cost, rules, file_paths)
        self._open = OpenBatch(0, share)
        self.num_oversize = 0
        """Rows that alone cost more than the limit, of those that this stream has consumed."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on."""
        before = self.num_oversize
        for portion in self._portions(self._pricing):
            self._place = self._place.at(portion.end_row)
            self.num_oversize += portion.num_oversize
            if portion.pieces:
                yield join(portion.pieces, "data_config.batch_cost_size")
        if self._rules.oversize is Oversize.drop and self.num_oversize > before:
            _logger.warning(
                "epoch %d: %s rows cost more than %s alone and were left out",
                self._place.epoch,
                f"{self.num_oversize - before:,}",
                f"{self._rules.limit:,}",
            )

    def count(self) -> CutCount:
        """What is left of the epoch, without moving the place: one pass over the source.

        It looks at costs only, so that a source of nothing but `cost.columns` is enough, and cheap.
        """
        counts = CutCount()
        for portion in self._portions(Pricing(self._cost, self._rules, self._file_paths, quiet=True)):
            counts = CutCount(
                counts.num_batches + bool(portion.pieces),
                counts.num_rows + portion.num_rows,
                max(counts.most_rows, portion.num_rows),
                counts.num_oversize + portion.num_oversize,
            )
        return counts

    def _portions(self, pricing: Pricing) -> Iterator[Portion]:
        """The rows of each batch; the last portion may be without rows, since every row of the source is in one."""
        rules = self._rules
        self._source.go_to(self._place)
        arrived_rows = self._place.row
        cutter = Cutter(rules.limit, rules.max_batch_rows)
        # An iteration that was left alone would hold its bytes for ever.
        self._open.release()
        self._open = OpenBatch(arrived_rows, self._share)
        with self._open as batch:
            for chunk in self._source:
                priced = pricing.price(chunk, arrived_rows)
                start = 0
                for end in cutter.ends(priced.costs):
                    batch.add(priced, start, end)
                    yield batch.close()
                    start = end
                batch.add(priced, start, len(priced.costs))
                batch.keep()
                arrived_rows += chunk.num_rows
                del chunk, priced
            yield batch.close_last(arrived_rows, is_wanted=not rules.drop_remainder or cutter.is_full)
