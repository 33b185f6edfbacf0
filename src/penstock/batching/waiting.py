"""Rows that arrived from a source and wait to be taken, with the place each came from.

Stages that take rows in other portions than their source gives them share this. Nothing of what waits is
ever saved: the place of the next row is the source's place before the batch that holds it, and how many
rows to skip from there.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.stream import RecordStream
from penstock.runtime.state import State


@dataclass(slots=True)
class _Arrived:
    """One batch of the source, of which some rows are gone."""

    rows: pa.RecordBatch
    source_place: State
    num_taken: int


class WaitingRows:
    """Takes any number of rows at a time from a source of record batches."""

    def __init__(self, source: RecordStream) -> None:
        self._source = source
        self._arrived: deque[_Arrived] = deque()
        self._num_waiting = 0
        self._num_to_skip = 0

    def take(self, source: Iterator[pa.RecordBatch], num_rows: int) -> list[pa.RecordBatch]:
        """The next rows, as views in the order of the source; fewer than asked for only at its end."""
        while self._num_waiting < num_rows and self._receive(source):
            pass
        pieces = []
        while num_rows and self._arrived:
            first = self._arrived[0]
            piece = first.rows.slice(first.num_taken, num_rows)
            pieces.append(piece)
            num_rows -= piece.num_rows
            first.num_taken += piece.num_rows
            self._num_waiting -= piece.num_rows
            if first.num_taken == first.rows.num_rows:
                self._arrived.popleft()
        return pieces

    def place(self) -> State:
        """Where the next row is."""
        if self._arrived:
            first = self._arrived[0]
            return {"source": first.source_place, "skip": first.num_taken}
        return {"source": self._source.state_dict(), "skip": self._num_to_skip}

    def go_to(self, place: State) -> None:
        """Continue at a place that `place` gave."""
        self._source.load_state_dict(place["source"])
        self._forget(num_to_skip=place["skip"])

    def set_epoch(self, epoch: int) -> None:
        """Continue at the start of an epoch."""
        self._source.set_epoch(epoch)
        self._forget(num_to_skip=0)

    def _forget(self, num_to_skip: int) -> None:
        self._arrived.clear()
        self._num_waiting = 0
        self._num_to_skip = num_to_skip

    def _receive(self, source: Iterator[pa.RecordBatch]) -> bool:
        place = self._source.state_dict()
        batch = next(source, None)
        if batch is None:
            return False
        num_skipped = min(self._num_to_skip, batch.num_rows)
        if num_skipped == batch.num_rows:
            self._num_to_skip -= num_skipped
            return True
        self._num_to_skip = 0
        self._arrived.append(_Arrived(batch, place, num_skipped))
        self._num_waiting += batch.num_rows - num_skipped
        return True


def join(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of several; a single one stays a view. Dictionaries are unified."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        joined: pa.RecordBatch = pa.concat_batches(pieces)  # type: ignore[attr-defined]
    except pa.ArrowInvalid as error:
        num_rows = sum(piece.num_rows for piece in pieces)
        raise DataError(
            f"{num_rows} rows do not fit one batch: {error}; lower data_config.batch_size"
        ) from error
    return joined
