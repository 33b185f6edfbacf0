"""The batch that is being filled: views of rows that arrived, and the bytes of those that wait for more."""

from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from penstock.batching.pricing import PricedRows
from penstock.batching.store_columns import own_bytes
from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import format_size
from penstock.runtime.budget import Share


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
