"""Only the first rows of every epoch of a stream."""

from collections.abc import Iterator

import pyarrow as pa

from penstock.batching.stage import Stage
from penstock.readers.stream import RecordStream


class TakeRows(Stage):
    """The first rows of a stream, in the order in which it gives them."""

    def __init__(self, source: RecordStream, num_rows: int) -> None:
        super().__init__(source)
        self._num_rows = num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on; nothing is read once there are enough."""
        if self._place.row >= self._num_rows:
            return
        self._source.go_to(self._place)
        for batch in self._source:
            taken = batch.slice(0, self._num_rows - self._place.row)
            self._place = self._place.at(self._place.row + taken.num_rows)
            yield taken
            if self._place.row >= self._num_rows:
                return
