"""Cut a stream into batches of a number of rows."""

from collections.abc import Iterator

import pyarrow as pa

from penstock.batching.waiting import WaitingRows, join
from penstock.readers.stream import RecordStream
from penstock.runtime.state import State


def cut_by_rows(source: RecordStream, num_rows: int, drop_remainder: bool = False) -> "RowCut":
    """Batches of `num_rows` rows, however the source gives them; the last one is short, or dropped.

    A batch that lies inside one batch of the source is a view of it; only across a border are rows copied.
    """
    return RowCut(source, num_rows, drop_remainder)


class RowCut:
    """The stream that `cut_by_rows` gives; its place is that of the next row."""

    def __init__(self, source: RecordStream, num_rows: int, drop_remainder: bool) -> None:
        if num_rows < 1:
            raise ValueError(f"a batch needs at least one row, not {num_rows}")
        self._source = source
        self._num_rows = num_rows
        self._drop_remainder = drop_remainder
        self._waiting = WaitingRows(source)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the source."""
        return self._source.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on."""
        source = iter(self._source)
        while pieces := self._waiting.take(source, self._num_rows):
            is_short = sum(piece.num_rows for piece in pieces) < self._num_rows
            if is_short and self._drop_remainder:
                return
            yield join(pieces)

    def state_dict(self) -> State:
        """The place of the next row."""
        return self._waiting.place()

    def load_state_dict(self, state: State) -> None:
        """Go to a place, also one that was saved with another number of rows per batch."""
        self._waiting.go_to(state)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self._waiting.set_epoch(epoch)
