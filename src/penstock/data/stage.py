"""What stages that reorder, filter or cut the rows of their source have in common."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.quarantine import Quarantine
from penstock.readers.stream import ROW_COLUMN, RecordStream, StreamPosition
from penstock.runtime.world import State


class Stage(RecordStream):
    """A stage over a source; one that keeps the order of rows says only how it gives them (`__iter__`).

    The position of such a stage is a count of the source's rows, so that its source is entered at the same row.
    """

    def __init__(self, source: RecordStream) -> None:
        self._source = source
        self._position = source.position

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema

    @property
    def order(self) -> State:
        return self._source.order

    @property
    def position(self) -> StreamPosition:
        return self._position

    def seek(self, position: StreamPosition) -> None:
        self._position = position

    def close(self) -> None:
        self._source.close()

    def check_order(self, saved: State) -> None:
        self._source.check_order(saved)


class RowBuffer:
    def __init__(self, source: Iterator[pa.RecordBatch]) -> None:
        self._source = source
        self._rest: pa.RecordBatch | None = None

    def pieces(self, num_rows: int) -> Iterator[pa.RecordBatch]:
        """The next rows, as views in the order of the source; fewer than asked for only at its end.

        Each piece is given as soon as it is there, and nothing is held that was given out.
        """
        while num_rows:
            first, self._rest = self._rest, None
            if first is None and (first := next(self._source, None)) is None:
                return
            piece = first.slice(0, num_rows)
            if piece.num_rows < first.num_rows:
                self._rest = first.slice(piece.num_rows)
            num_rows -= piece.num_rows
            del first
            yield piece


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
        raise DataError(f"{num_rows} rows do not fit one batch: {error}; lower {setting}", setting) from error
    return joined


class TakeRows(Stage):
    def __init__(self, source: RecordStream, num_rows: int) -> None:
        super().__init__(source)
        self._num_rows = num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._position.row >= self._num_rows:
            return
        self._source.seek(self._position)
        for batch in self._source:
            taken = batch.slice(0, self._num_rows - self._position.row)
            self._position = self._position.at(self._position.row + taken.num_rows)
            yield taken
            if self._position.row >= self._num_rows:
                return


class QuarantineFilter(Stage):
    """The batches of the source without the rows that readers have put into quarantine.

    The position counts them all the same: a row that was left out is done.
    """

    def __init__(self, source: RecordStream, quarantine: Quarantine) -> None:
        super().__init__(source)
        self._quarantine = quarantine

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._source.seek(self._position)
        for batch in self._source:
            self._position = self._source.position
            bad = self._quarantine.bad(np.asarray(batch.column(ROW_COLUMN)))
            rows = batch.filter(pa.array(~bad)) if bad.any() else batch
            if rows.num_rows:
                yield rows
