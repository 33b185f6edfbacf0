"""Look at batches as they go by, without changing them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.batching.quality import ShuffleQuality
from penstock.batching.stage import Stage
from penstock.readers.origin import ROW_COLUMN
from penstock.readers.stream import RecordStream


def watch_order(source: RecordStream, quality: ShuffleQuality, label: str | None = None) -> "WatchedOrder":
    """The batches of the source, seen by `quality`; `label` is a column of numbers."""
    return WatchedOrder(source, quality, label)


class WatchedOrder(Stage):
    """The stream that `watch_order` gives."""

    def __init__(self, source: RecordStream, quality: ShuffleQuality, label: str | None) -> None:
        super().__init__(source)
        self._quality = quality
        self._label = label

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on."""
        self._source.go_to(self._place)
        for batch in self._source:
            self._place = self._source.place
            self._quality.see(np.asarray(batch.column(ROW_COLUMN)), self._labels(batch))
            yield batch

    def _labels(self, batch: pa.RecordBatch) -> np.ndarray | None:
        """The labels as numbers, where they are numbers."""
        column = None if self._label is None else batch.column(self._label)
        if column is None or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            return None
        return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
