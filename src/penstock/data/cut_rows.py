"""Cut a stream into batches of a number of rows."""

from collections.abc import Iterator

import pyarrow as pa

from penstock.data.stage import Stage, WaitingRows, join
from penstock.readers.stream import RecordStream


def cut_by_rows(source: RecordStream, num_rows: int, drop_remainder: bool = False) -> "RowCut":
    """Batches of `num_rows` rows, however the source gives them; the last one is short, or dropped.

    A batch that lies inside one batch of the source is a view of it; only across a border are rows copied.
    """
    return RowCut(source, num_rows, drop_remainder)


class RowCut(Stage):
    """The stream that `cut_by_rows` gives; a place may go on with another number of rows per batch."""

    def __init__(self, source: RecordStream, num_rows: int, drop_remainder: bool) -> None:
        if num_rows < 1:
            raise ValueError(f"a batch needs at least one row, not {num_rows}")
        super().__init__(source)
        self._num_rows = num_rows
        self._drop_remainder = drop_remainder

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on."""
        self._source.go_to(self._place)
        waiting = WaitingRows(iter(self._source))
        while pieces := waiting.take(self._num_rows):
            num_rows = sum(piece.num_rows for piece in pieces)
            self._place = self._place.at(self._place.row + num_rows)
            if num_rows < self._num_rows and self._drop_remainder:
                return
            yield join(pieces)
