"""Several blocks decoded at once, each by a thread and a decoder of its own, given out in their order.

For formats whose decoder does the work of one core: text and records. Decoding releases the interpreter, and a block
is small, so that one that waits for its turn takes little.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

import pyarrow as pa

from penstock.readers.sequence import Piece
from penstock.readers.survey import BlockDecoder, Survey
from penstock.runtime.budget import Share
from penstock.runtime.world import most_lanes


def num_lanes(survey: Survey, share: Share) -> int:
    """How many threads decode: as many as there are cores for, and room in the share."""
    return max(1, min(most_lanes(), share.limit_bytes // survey.lane_bytes)) if survey.lane_bytes else 1


class Lanes:
    """A decoder of pieces, some of them at a time."""

    def __init__(self, survey: Survey, share: Share, count: int) -> None:
        self._decoders = [survey.decoder(part) for part in share.split(count)]
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="penstock-decode")
        self._free: SimpleQueue[BlockDecoder] = SimpleQueue()
        for decoder in self._decoders:
            self._free.put(decoder)

    def decode(self, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, list[pa.RecordBatch]]]:
        """The batches of each piece, in the order of the pieces. An error comes in its turn."""
        waiting: deque[tuple[Piece, Future[list[pa.RecordBatch]]]] = deque()
        for piece in pieces:
            waiting.append((piece, self._pool.submit(self._decode, piece)))
            if len(waiting) > len(self._decoders):
                yield _first(waiting)
        while waiting:
            yield _first(waiting)

    def close(self) -> None:
        """End the threads and close all decoders; a second time does nothing."""
        self._pool.shutdown(cancel_futures=True)
        for decoder in self._decoders:
            decoder.close()

    def _decode(self, piece: Piece) -> list[pa.RecordBatch]:
        decoder = self._free.get()
        try:
            return list(decoder.batches(piece.block, piece.first_row, piece.end_row))
        finally:
            self._free.put(decoder)


def _first(
    waiting: "deque[tuple[Piece, Future[list[pa.RecordBatch]]]]",
) -> tuple[Piece, list[pa.RecordBatch]]:
    piece, batches = waiting.popleft()
    return piece, batches.result()
