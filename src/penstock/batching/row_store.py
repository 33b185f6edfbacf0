"""Room for the rows of a shuffle window, made once and used for every window.

Making the room anew for each window would cost more than filling it: the system clears every page that it gives
out. So columns of a fixed width have arrays of their own, into which rows are copied. They are permuted one column
at a time, which fits the processor's cache where all columns together do not: drawing batch by batch from all columns
is two to four times slower. Columns of other types (texts, lists) are joined by Arrow, window by window.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from penstock.batching.store_columns import FixedColumn, SpareRooms, StoreColumn, column_for
from penstock.config.sizes import MIB
from penstock.readers.blocks import Int64Array

_SLACK_BYTES = MIB


class RowStore:
    """The rows of one window, in columns."""

    def __init__(self, schema: pa.Schema, most_rows: int) -> None:
        self._schema = schema
        self._most_rows = most_rows
        self._spare = SpareRooms()
        self._columns: list[StoreColumn] = [column_for(field.type, self._spare) for field in schema]
        self.num_rows = 0

    def fill(self, pieces: Iterable[pa.RecordBatch]) -> None:
        """Hold these rows instead of those before; each piece is copied before the next is asked for."""
        self.num_rows = 0
        for column in self._columns:
            column.begin(self._most_rows)
        for piece in pieces:
            self.num_rows += piece.num_rows
            for column, array in zip(self._columns, piece.columns, strict=True):
                column.append(array)

    def permute(self, order: Int64Array) -> None:
        """Bring the rows into an order: those at these places, one after the other."""
        order = order.astype(np.uint32) if len(order) < 2**32 else order
        for column in self._columns:
            column.permute(order)

    def rows(self, start: int, end: int, as_views: bool = False) -> pa.RecordBatch:
        """Some rows, in the present order.

        As views they cost nothing, but each keeps the whole window: for consumers that let go of one batch before they
        take the next. Room that somebody still has views of when the next window comes is left to them and made anew.
        """
        # Whoever asks for the next window still has the last rows of this one in hand.
        as_views = as_views and end < self.num_rows
        return pa.RecordBatch.from_arrays(
            [column.rows(start, end, as_views) for column in self._columns], schema=self._schema
        )

    @property
    def num_bytes(self) -> int:
        """Of all columns, as they are held."""
        return self._spare.num_bytes + sum(column.num_bytes for column in self._columns)


def window_bytes(schema: pa.Schema, num_rows: int, row_bytes: int) -> int:
    """What a store of so many rows takes at most, where rows take `row_bytes` in Arrow.

    Beside the rows: a byte per value that tells nulls, spare room for one column of each size, and what is not of a
    fixed width once more, since it exists twice while it is joined.
    """
    fixed = [
        column for field in schema if isinstance(column := column_for(field.type, SpareRooms()), FixedColumn)
    ]
    null_bytes = sum(column.width + 1 for column in fixed)
    spare_bytes = sum(number_bytes * width for number_bytes, width in {column.size for column in fixed})
    fixed_bytes = sum(column.number_bytes * column.width for column in fixed)
    joined_bytes = 0 if len(fixed) == len(schema) else max(0, row_bytes - fixed_bytes)
    return num_rows * (row_bytes + null_bytes + spare_bytes + joined_bytes) + _SLACK_BYTES


def warm() -> None:
    """Load and compile what the first window would have to wait for."""
    SpareRooms().exchange(np.zeros(1, np.uint64), np.zeros(1, np.uint32))
