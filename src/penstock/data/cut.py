"""Cut a stream into batches: of a number of rows, or of rows that cost no more than a limit together."""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import format_size
from penstock.data.row_cost import CostOf, Costs
from penstock.data.sections import Oversize
from penstock.data.stage import RowBuffer, Stage, join
from penstock.data.window import own_bytes
from penstock.readers.order import BoolArray, Int64Array
from penstock.readers.stream import ROW_COLUMN, RecordStream, locate
from penstock.runtime.budget import Share

logger = logging.getLogger(__name__)

MAX_LIMIT = 2**62
"""Past it, whole numbers could not be added up exactly."""
_MIN_LOOK_ROWS = 16


class RowCut(Stage):
    """Batches of `num_rows` rows, however the source gives them; the last one is short, or dropped.

    A batch that lies inside one batch of the source is a view of it; only across a border are rows copied. A position
    may go on with another number of rows per batch.
    """

    def __init__(self, source: RecordStream, num_rows: int, drop_remainder: bool = False) -> None:
        if num_rows < 1:
            raise ValueError(f"a batch needs at least one row, not {num_rows}")
        super().__init__(source)
        self._num_rows = num_rows
        self._drop_remainder = drop_remainder

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._source.seek(self._position)
        buffer = RowBuffer(iter(self._source))
        while pieces := buffer.take(self._num_rows):
            num_rows = sum(piece.num_rows for piece in pieces)
            self._position = self._position.at(self._position.row + num_rows)
            if num_rows < self._num_rows and self._drop_remainder:
                return
            yield join(pieces)


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
        num_rows = max(_MIN_LOOK_ROWS, 2 * self._usual_rows, self._num_rows)
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
        if not 0 < self.limit <= MAX_LIMIT:
            raise ValueError(f"a batch may cost more than 0 and at most 2**62, not {self.limit}")
        if self.max_batch_rows is not None and self.max_batch_rows < 1:
            raise ValueError(f"a batch needs at least one row, not {self.max_batch_rows}")
        if self.null_cost is not None and not 0 <= self.null_cost < np.inf:
            raise ValueError(f"the cost of a row without one is a number from 0 on, not {self.null_cost}")


@dataclass(frozen=True, slots=True)
class CutCount:
    """What cutting a stream gives."""

    num_batches: int = 0
    num_rows: int = 0
    """Rows of all batches."""
    max_rows: int = 0
    """Of one batch."""
    num_oversize: int = 0
    """Rows that alone cost more than the limit; they are in the batches unless such rows are dropped."""


@dataclass(frozen=True, slots=True)
class _PricedRows:
    """The rows of a chunk that will be given out, and their costs."""

    rows: pa.RecordBatch
    costs: Costs
    first_row: int
    """The number of the chunk's first row, given out or not, among all of the source."""
    kept: Int64Array | None = None
    """Which rows of the chunk these are; None: all."""
    oversize: BoolArray | None = None
    """Which of these rows cost more than a batch may; None: none does."""


@dataclass(slots=True)
class _Portion:
    """Rows that a batch takes from the source, and how far the source is consumed with them."""

    first_row: int
    end_row: int
    """The row of the source at which the next batch begins."""
    pieces: list[pa.RecordBatch] = field(default_factory=list)
    num_rows: int = 0
    num_alone: int = 0
    """Rows of the batch that alone cost too much."""

    def add(self, priced: _PricedRows, start: int, end: int) -> None:
        """Take more rows, as a view. Rows that were left out before them are consumed with them."""
        if start == end:
            return
        self.pieces.append(priced.rows.slice(start, end - start))
        self.num_rows += end - start
        self.end_row = priced.first_row + (end if priced.kept is None else int(priced.kept[end - 1]) + 1)
        if priced.oversize is not None:
            self.num_alone += int(np.count_nonzero(priced.oversize[start:end]))

    @property
    def num_oversize(self) -> int:
        """Rows of the source that alone cost too much, in the batch or left out."""
        return self.num_alone + self.end_row - self.first_row - self.num_rows


class CostCut(Stage):
    """Batches of as many consecutive rows as cost no more than a limit together, however the source gives them.

    A batch ends before the first row that does not fit, and never skips one to fit a later one. The rows of an open
    batch are views of the source's; those that wait for the next chunk are leased from the share, so that rows
    that cost nothing cannot fill the memory. A position may go on with another limit. `file_paths` are for messages.
    """

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
        self._cost, self._rules, self._file_paths, self._share = cost, rules, file_paths, share
        self._held_bytes = 0
        self._has_warned = False
        self.num_oversize = 0
        """Rows that alone cost more than the limit, of those that this stream has consumed."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        before = self.num_oversize
        for portion in self._portions():
            self._position = self._position.at(portion.end_row)
            self.num_oversize += portion.num_oversize
            if portion.num_rows:
                yield join(portion.pieces, "data_config.batch_cost_size")
        if self._rules.oversize is Oversize.drop and self.num_oversize > before:
            logger.warning(
                "epoch %d: %s rows cost more than %s alone and were left out",
                self._position.epoch,
                f"{self.num_oversize - before:,}",
                f"{self._rules.limit:,}",
            )

    def count(self) -> CutCount:
        """What is left of the epoch, without moving the position: one pass over the source.

        It looks at costs only, so that a source of nothing but `cost.columns` is enough, and cheap.
        """
        counts, has_warned = CutCount(), self._has_warned
        self._has_warned = True
        for portion in self._portions():
            counts = CutCount(
                counts.num_batches + bool(portion.num_rows),
                counts.num_rows + portion.num_rows,
                max(counts.max_rows, portion.num_rows),
                counts.num_oversize + portion.num_oversize,
            )
        self._has_warned = has_warned
        return counts

    def _portions(self) -> Iterator[_Portion]:
        """The rows of each batch; the last portion may be without rows, since every row of the source is in one."""
        self._source.seek(self._position)
        self._release()  # what an iteration holds that was left alone
        chunk_row = self._position.row
        cutter, portion = (
            Cutter(self._rules.limit, self._rules.max_batch_rows),
            _Portion(chunk_row, chunk_row),
        )
        try:
            for chunk in self._source:
                priced = self._price(chunk, chunk_row)
                start = 0
                for end in cutter.ends(priced.costs):
                    portion.add(priced, start, end)
                    self._release()
                    yield portion
                    portion, start = _Portion(portion.end_row, portion.end_row), end
                portion.add(priced, start, len(priced.costs))
                if start < len(priced.costs):
                    self._hold(portion)
                chunk_row += chunk.num_rows
                del chunk, priced
            portion.end_row = chunk_row
            if self._rules.drop_remainder and not cutter.is_full:
                portion = _Portion(chunk_row - portion.num_oversize, chunk_row)
            yield portion
        finally:
            self._release()

    def _hold(self, portion: _Portion) -> None:
        """Lease the last piece, which waits with the others while the source makes its next chunk."""
        if self._share is None:
            return
        num_bytes = sum(own_bytes(column) for column in portion.pieces[-1].columns)
        total_bytes = self._held_bytes + num_bytes
        if total_bytes > self._share.limit_bytes:
            raise BudgetExceeded(
                f"{portion.num_rows} rows take {format_size(total_bytes)} and do not fill a batch yet, but "
                f"{self._share.name} may hold {format_size(self._share.limit_bytes)}; set "
                "data_config.max_batch_rows, or lower data_config.batch_cost_size"
            )
        self._share.acquire(num_bytes)
        self._held_bytes = total_bytes

    def _release(self) -> None:
        if self._share is not None:
            self._share.release(self._held_bytes)
            self._held_bytes = 0

    def _price(self, chunk: pa.RecordBatch, first_row: int) -> _PricedRows:
        rules, costs = self._rules, self._cost.of(chunk)
        if rules.null_cost is not None and not float(rules.null_cost).is_integer():
            costs = costs.astype(np.float64)
        usable = (costs >= 0) & (costs < np.inf)
        if not usable.all():
            if rules.null_cost is None:
                raise self._no_cost(chunk, int(np.argmin(usable)))
            costs = np.where(usable, costs, np.asarray(rules.null_cost, costs.dtype))
        oversize = is_over(costs, rules.limit)
        if not oversize.any():
            return _PricedRows(chunk, costs, first_row)
        self._report_oversize(chunk, costs, int(np.argmax(oversize)))
        if rules.oversize is Oversize.alone:
            return _PricedRows(chunk, costs, first_row, oversize=oversize)
        kept = ~oversize
        return _PricedRows(chunk.filter(pa.array(kept)), costs[kept], first_row, np.flatnonzero(kept))

    def _no_cost(self, batch: pa.RecordBatch, row: int) -> DataError:
        """A cost is missing only where it stands in a column, since no length ever is."""
        [column] = self._cost.columns
        value = batch.column(column)[row].as_py()
        problem = "is null" if value is None else "is not a cost: it must be a finite number from 0 on"
        file, file_row = self._origin(batch, row)
        advice = "correct the file, or set data_config.null_cost"
        return DataError.at(f"{problem}; {advice}", file=file, row=file_row, column=column, value=value)

    def _report_oversize(self, batch: pa.RecordBatch, costs: Costs, row: int) -> None:
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
            message = DataError.at(problem, file=file, row=file_row, column=self._cost.name)
            logger.warning("%s; such a row %s (data_config.oversize)", message, fate)

    def _origin(self, batch: pa.RecordBatch, row: int) -> tuple[str, int]:
        """The file and the row there; the file's number where no paths were given."""
        file_index, file_row = locate(batch.column(ROW_COLUMN)[row].as_py())
        known = file_index < len(self._file_paths)
        return self._file_paths[file_index] if known else f"file {file_index}", file_row
