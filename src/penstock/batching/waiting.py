"""Rows that arrived from a source and wait to be taken. Stages that take other portions than they get share this."""

from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from penstock.config.errors import DataError


class WaitingRows:
    """Takes any number of rows at a time from record batches of any size."""

    def __init__(self, source: Iterator[pa.RecordBatch]) -> None:
        self._source = source
        self._arrived: deque[pa.RecordBatch] = deque()

    def take(self, num_rows: int) -> list[pa.RecordBatch]:
        """The next rows, as views in the order of the source; fewer than asked for only at its end."""
        return list(self.pieces(num_rows))

    def pieces(self, num_rows: int) -> Iterator[pa.RecordBatch]:
        """The same rows, each piece as soon as it is there: nothing is held that was given out."""
        while num_rows and (self._arrived or self.receive() is not None):
            first = self._arrived.popleft()
            piece = first.slice(0, num_rows)
            if piece.num_rows < first.num_rows:
                self._arrived.appendleft(first.slice(piece.num_rows))
            num_rows -= piece.num_rows
            del first
            yield piece

    def receive(self) -> pa.RecordBatch | None:
        """Let one more batch of the source wait, and look at it; None at the end of the source."""
        batch = next(self._source, None)
        if batch is not None:
            self._arrived.append(batch)
        return batch


def join(pieces: list[pa.RecordBatch], setting: str = "data_config.batch_size") -> pa.RecordBatch:
    """One batch of several; a single one stays a view. Dictionaries are unified.

    `setting` is the key of the run file that makes batches smaller.
    """
    if len(pieces) == 1:
        return pieces[0]
    try:
        joined: pa.RecordBatch = pa.concat_batches(pieces)  # type: ignore[attr-defined]
    except pa.ArrowInvalid as error:
        num_rows = sum(piece.num_rows for piece in pieces)
        raise DataError(f"{num_rows} rows do not fit one batch: {error}; lower {setting}") from error
    return joined
