"""Read the next rows while the last ones are in use."""

from collections.abc import Iterator

import pyarrow as pa

from penstock.batching.prefetch import Prefetch, prefetch
from penstock.batching.stage import Stage
from penstock.readers.stream import Place, RecordStream
from penstock.runtime.budget import Share


def read_ahead(source: RecordStream, share: Share) -> "ReadAhead":
    """The batches of the source, made by a thread of their own: decoding releases the interpreter, and so goes on
    beside parsing.

    The bytes of the batches that wait, and of the one that was given out last, are leased from the share.
    """
    return ReadAhead(source, share)


class ReadAhead(Stage):
    """The stream that `read_ahead` gives."""

    def __init__(self, source: RecordStream, share: Share) -> None:
        super().__init__(source)
        self._share = share
        self._running: Prefetch[pa.RecordBatch] | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on."""
        self._stop()
        self._source.go_to(self._place)
        running = self._running = prefetch(self._source, self._share, hold_handed_out=True)
        self._source.num_waiting = running.num_waiting
        try:
            for batch in running:
                self._place = self._place.at(self._place.row + batch.num_rows)
                yield batch
        finally:
            self._source.num_waiting = None
            running.close()

    def go_to(self, place: Place) -> None:
        """Drop what was read ahead."""
        self._stop()
        super().go_to(place)

    def close(self) -> None:
        """End the thread, and what the source has open."""
        self._stop()
        super().close()

    def _stop(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None
