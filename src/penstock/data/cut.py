"""Stages over a stream, and those that cut it into batches: of a number of rows, or of rows that cost no more than a
limit together.
"""

import logging
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import format_size
from penstock.data.row_cost import CostOf, Costs
from penstock.data.sections import Oversize
from penstock.data.window import own_bytes
from penstock.readers.order import Int64Array
from penstock.readers.stream import ROW_COLUMN, Quarantine, RecordStream, file_and_row
from penstock.runtime.budget import Share

logger = logging.getLogger(__name__)

MAX_LIMIT = 2**62
"""Past it, whole numbers could not be added up exactly."""
_MIN_LOOK_ROWS = 16
CONSUMED_FIELD = pa.field("__consumed__", pa.int64(), nullable=False)
"""Where rows were left out: how many rows of the source are consumed with each that is left."""


def consumed_with(batch: pa.RecordBatch, first_row: int) -> Int64Array:
    """How many rows of the source are consumed with each row of a batch; `first_row` of them before it."""
    if (index := batch.schema.get_field_index(CONSUMED_FIELD.name)) >= 0:
        return np.asarray(batch.column(index))
    return np.arange(first_row + 1, first_row + batch.num_rows + 1)


class Stage(RecordStream):
    """A stage over a source; one that keeps the order of rows says only how it gives them (`__iter__`).

    The position of such a stage is a count of the source's rows, so that its source is entered at the same row.
    """

    def __init__(self, source: RecordStream) -> None:
        self._source, self.schema, self.order = source, source.schema, source.order
        self.position, self.file_paths = source.position, source.file_paths

    def close(self) -> None:
        self._source.close()


def split_rows(batches: Iterable[pa.RecordBatch], num_rows: int) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Views of the rows in their order, and with each whether it fills a portion of `num_rows` rows.

    Each is given as soon as it is there, and nothing of a batch is held while the next one is made.
    """
    num_missing = num_rows
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            end = min(start + num_missing, batch.num_rows)
            num_missing -= end - start
            yield batch.slice(start, end - start), not num_missing
            start, num_missing = end, num_missing or num_rows
        del batch


def join(pieces: list[pa.RecordBatch], setting: str = "data_config.batch_size") -> pa.RecordBatch:
    """One batch of several; a single one stays a view. Dictionaries are unified.

    `setting` is the key of the run file that makes batches smaller.
    """
    try:
        return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)  # type: ignore[attr-defined]
    except pa.ArrowInvalid as error:
        num_rows = sum(piece.num_rows for piece in pieces)
        raise DataError(f"{num_rows} rows do not fit one batch: {error}; lower {setting}", setting) from error


class RowCut(Stage):
    """Batches of `num_rows` rows, however the source gives them; the last one is short, or dropped.

    A batch that lies inside one batch of the source is a view of it; only across a border are rows copied. A position
    may go on with another number of rows per batch.
    """

    def __init__(self, source: RecordStream, num_rows: int, drop_remainder: bool = False) -> None:
        super().__init__(source)
        self._num_rows, self._drop_remainder = num_rows, drop_remainder

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._source.position = self.position
        pieces: list[pa.RecordBatch] = []
        for piece, is_last in split_rows(self._source, self._num_rows):
            pieces.append(piece)
            del piece
            if is_last:
                batch = self._joined(pieces)
                pieces = []
                yield batch
                del batch
        if pieces:
            batch = self._joined(pieces)
            if not self._drop_remainder:
                yield batch

    def _joined(self, pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
        """The batch of these rows, with which the position moves behind them."""
        batch = join(pieces)
        num_rows = self.position.row + batch.num_rows
        if (index := batch.schema.get_field_index(CONSUMED_FIELD.name)) >= 0:
            num_rows = batch.column(index)[-1].as_py()
        self.position = self.position.at(num_rows)
        return batch


class TakeRows(Stage):
    def __init__(self, source: RecordStream, num_rows: int) -> None:
        super().__init__(source)
        self._num_rows = num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self.position.row >= self._num_rows:
            return
        self._source.position = self.position
        for batch in self._source:
            taken = batch.slice(0, self._num_rows - self.position.row)
            self.position = self.position.at(self.position.row + taken.num_rows)
            yield taken
            if self.position.row >= self._num_rows:
                return


class QuarantineFilter(Stage):
    """The batches of the source without the rows that readers have put into quarantine.

    The position counts them all the same: a row that was left out is done.
    """

    def __init__(self, source: RecordStream, quarantine: Quarantine) -> None:
        super().__init__(source)
        self._quarantine = quarantine

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._source.position = self.position
        for batch in self._source:
            self.position = self._source.position
            bad = self._quarantine.bad(np.asarray(batch.column(ROW_COLUMN)))
            rows = batch.filter(pa.array(~bad)) if bad.any() else batch
            if rows.num_rows:
                yield rows


@dataclass(frozen=True, slots=True)
class CostRules:
    limit: float
    """Most that the rows of a batch may cost together."""
    max_batch_rows: int | None = None
    oversize: Oversize = Oversize.alone
    """What happens to a row that alone costs more than the limit."""
    null_cost: float | None = None
    """What a row costs whose own cost is null, negative or not finite; None: it is an error."""
    drop_remainder: bool = False
    """Leave out the last batch where more would have fitted into it."""

    def __post_init__(self) -> None:
        if not 0 < self.limit <= MAX_LIMIT:
            raise ValueError(f"a batch may cost more than 0 and at most 2**62, not {self.limit}")
        if self.null_cost is not None and not 0 <= self.null_cost < np.inf:
            raise ValueError(f"the cost of a row without one is a number from 0 on, not {self.null_cost}")

    def is_over(self, costs: Costs) -> NDArray[np.bool_]:
        """Which of these are more than the limit; whole numbers are compared as whole numbers.

        The first sum that leaves int64 comes out negative, and is above every limit when read without a sign.
        """
        if costs.dtype == np.int64:
            return np.asarray(costs.view(np.uint64) > math.floor(self.limit))
        return np.asarray(costs > self.limit)


class Cutter:
    """Ends a batch before the first row with which it would cost more than the limit, or have too many rows.

    Costs are added one after another from the first row of a batch on, so that the sum of floating costs is the same
    however the rows arrive. A row that alone costs more than the limit is a batch of its own.
    """

    def __init__(self, rules: CostRules) -> None:
        self._rules = rules
        self._num_rows = 0
        self.total: float = 0
        """What the rows cost that wait."""
        self._usual_rows = 0

    def ends(self, costs: Costs) -> Iterator[int]:
        """The rows of a chunk before which a batch ends: 0 ends the one that was open when the chunk arrived.

        Rows after the last end stay open. There is one turn for each batch, not for each row, and a row is added up
        a few times at most.
        """
        max_rows, start = self._rules.max_batch_rows, 0
        while start < len(costs):
            # About as many as the last batch had, and twice as many each time that this was not enough.
            num_looked_at = max(_MIN_LOOK_ROWS, 2 * self._usual_rows, self._num_rows)
            if max_rows is not None:
                num_looked_at = min(num_looked_at, max_rows - self._num_rows)
            sums = costs[start : start + num_looked_at].copy()
            sums[:1] += self.total
            np.cumsum(sums, out=sums)
            over = self._rules.is_over(sums)
            num_fitting = int(np.argmax(over)) if over.any() else len(sums)
            if num_fitting:
                self.total = sums[num_fitting - 1].item()
            self._num_rows += num_fitting
            start += num_fitting
            if num_fitting == len(sums) and self._num_rows != max_rows:
                continue
            if not self._num_rows:  # the row alone costs more than the limit
                self._num_rows = 1
                start += 1
            self._usual_rows, self._num_rows, self.total = self._num_rows, 0, 0
            yield start


@dataclass(slots=True)
class _Portion:
    """Rows that a batch takes from the source, and how far the source is consumed with them."""

    end_row: int
    """The row of the source at which the next batch begins; rows that were left out before it are consumed too."""
    num_oversize: int = 0
    """Rows from the start of the iteration up to this end that alone cost too much, in a batch or left out."""
    pieces: list[pa.RecordBatch] = field(default_factory=list)
    num_rows: int = 0


class CostCut(Stage):
    """Batches of as many consecutive rows as cost no more than a limit together, however the source gives them.

    A batch ends before the first row that does not fit, and never skips one to fit a later one. The rows of an open
    batch are views of the source's; those that wait for the next chunk are leased from the share, so that rows
    that cost nothing cannot fill the memory. A position may go on with another limit.
    """

    def __init__(
        self, source: RecordStream, cost: CostOf, rules: CostRules, share: Share | None = None
    ) -> None:
        cost.check(source.schema)
        super().__init__(source)
        self._cost, self._rules, self._share = cost, rules, share
        self._held_bytes = 0
        self._has_warned = False
        self.num_oversize = 0
        """Rows that alone cost more than the limit, of those that this stream has consumed."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        before = self.num_oversize
        for portion in self._portions():
            self.position = self.position.at(portion.end_row)
            self.num_oversize = before + portion.num_oversize
            if portion.num_rows:
                yield join(portion.pieces, "data_config.batch_cost_size")
        if self._rules.oversize is Oversize.drop and self.num_oversize > before:
            logger.warning(
                "epoch %d: %s rows cost more than %s alone and were left out",
                self.position.epoch,
                f"{self.num_oversize - before:,}",
                f"{self._rules.limit:,}",
            )

    def count(self) -> int:
        """The batches that are left of the epoch, without moving the position: one pass over the source.

        It looks at costs only, so that a source of nothing but `cost.columns` is enough, and cheap.
        """
        has_warned, self._has_warned = self._has_warned, True
        num_batches = sum(portion.num_rows > 0 for portion in self._portions())
        self._has_warned = has_warned
        return num_batches

    def _portions(self) -> Iterator[_Portion]:
        """The rows of each batch; the last portion may be without rows, since every row of the source is in one."""
        self._source.position = self.position
        self._release()  # what an iteration holds that was left alone
        end_row, num_oversize = self.position.row, 0
        cutter, portion = Cutter(self._rules), _Portion(end_row)
        try:
            for chunk in self._source:
                costs = self._costs(chunk)
                rows, is_alone, ends = chunk, self._rules.is_over(costs), consumed_with(chunk, end_row)
                oversize = num_oversize + np.cumsum(is_alone)
                end_row, num_oversize = int(ends[-1]), int(oversize[-1])
                if is_alone.any():
                    self._report_oversize(chunk, costs, int(np.argmax(is_alone)))
                    if self._rules.oversize is Oversize.drop:
                        rows, kept = chunk.filter(pa.array(~is_alone)), ~is_alone
                        costs, ends, oversize = costs[kept], ends[kept], oversize[kept]
                start = 0
                for end in (*cutter.ends(costs), None):
                    stop = len(costs) if end is None else end
                    if start < stop:
                        portion.pieces.append(rows.slice(start, stop - start))
                        portion.num_rows += stop - start
                        portion.end_row, portion.num_oversize = int(ends[stop - 1]), int(oversize[stop - 1])
                        if end is None:
                            self._hold(portion)
                    if end is not None:
                        self._release()
                        yield portion
                        portion, start = _Portion(portion.end_row), end
                del chunk, rows
            portion.end_row, portion.num_oversize = end_row, num_oversize
            if self._rules.drop_remainder and cutter.total < self._rules.limit:
                portion = _Portion(end_row, num_oversize)
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
            settings = ("data_config.max_batch_rows", "data_config.batch_cost_size")
            raise BudgetExceeded(
                f"{portion.num_rows} rows take {format_size(total_bytes)} and do not fill a batch yet, but "
                f"{self._share.name} may hold {format_size(self._share.limit_bytes)}; set {settings[0]}, or lower "
                f"{settings[1]}",
                *settings,
            )
        self._share.acquire(num_bytes)
        self._held_bytes = total_bytes

    def _release(self) -> None:
        if self._share is not None:
            self._share.release(self._held_bytes)
            self._held_bytes = 0

    def _costs(self, chunk: pa.RecordBatch) -> Costs:
        null_cost, costs = self._rules.null_cost, self._cost.of(chunk)
        if null_cost is not None and not float(null_cost).is_integer():
            costs = costs.astype(np.float64)
        usable = (costs >= 0) & (costs < np.inf)
        if usable.all():
            return costs
        if null_cost is not None:
            return np.where(usable, costs, np.asarray(null_cost, costs.dtype))
        # A cost is missing only where it stands in a column, since no length ever is.
        row, [column] = int(np.argmin(usable)), self._cost.columns
        value = chunk.column(column)[row].as_py()
        problem = "is null" if value is None else "is not a cost: it must be a finite number from 0 on"
        file, file_row = file_and_row(chunk.column(ROW_COLUMN)[row].as_py(), self.file_paths)
        setting = "data_config.null_cost"
        text = f"{problem}; correct the file, or set {setting}"
        raise DataError.at(text, setting, file=file, row=file_row, column=column, value=value)

    def _report_oversize(self, batch: pa.RecordBatch, costs: Costs, row: int) -> None:
        """An error, or a warning the first time."""
        file, file_row = file_and_row(batch.column(ROW_COLUMN)[row].as_py(), self.file_paths)
        rules = self._rules
        problem = f"costs {costs[row]} but a batch may cost {rules.limit:g}"
        if rules.oversize is Oversize.error:
            settings = ("data_config.batch_cost_size", "data_config.oversize")
            problem += f"; raise {settings[0]}, or set {settings[1]} to alone or drop"
            raise DataError.at(problem, *settings, file=file, row=file_row, column=self._cost.name)
        if not self._has_warned:
            self._has_warned = True
            fate = "is a batch of its own" if rules.oversize is Oversize.alone else "is left out"
            message = DataError.at(problem, file=file, row=file_row, column=self._cost.name)
            logger.warning("%s; such a row %s (data_config.oversize)", message, fate)
