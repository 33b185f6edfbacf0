"""The stream over the blocks of any format: order, shards, positions and row ids.

Formats whose decoder does the work of one core (text and records) are decoded by several threads at once: decoding
releases the interpreter, and a block is small, so that one that waits for its turn takes little.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from queue import SimpleQueue

import pyarrow as pa

from penstock.readers.order import EpochOrder, Piece, Shard
from penstock.readers.scan import BlockDecoder, ScannedFiles
from penstock.readers.stream import ROW_FIELD, RecordStream, StreamPosition, with_row_ids
from penstock.runtime.budget import Share
from penstock.runtime.world import max_decode_threads

ONE_SHARD = Shard()
_ENOUGH_WAITING = 2  # with so many batches waiting, one core is enough to decode the next


@dataclass(eq=False)
class RollingLease:
    """Leases the block in work, and of the one before it what may still be in use as views.

    Whether a block may grow depends on the block alone and not on the one before it, so that a run that continues
    decides as the first one did: `max_needed_bytes` is for the block in work, the rest for what is retained.
    """

    _share: Share
    max_needed_bytes: int
    _held_bytes: int = field(default=0, init=False)
    _needed_bytes: int = field(default=0, init=False)
    _retained_bytes: int = field(default=0, init=False)

    def move_on(self, needed_bytes: int, retained_bytes: int) -> None:
        """Take the bytes of the next block; of the present one only what it said it retains stays leased."""
        self._share.release(self._held_bytes - self._retained_bytes)
        self._held_bytes = self._retained_bytes
        self._share.acquire(needed_bytes)
        self._held_bytes += needed_bytes
        self._needed_bytes, self._retained_bytes = needed_bytes, retained_bytes

    def change(self, needed_bytes: int, retained_bytes: int) -> None:
        """Go on with the present block, of which nothing was given out yet, as if these were its bytes."""
        extra_bytes = needed_bytes - self._needed_bytes
        if extra_bytes > 0:
            self._share.acquire(extra_bytes)
        else:
            self._share.release(-extra_bytes)
        self._held_bytes += extra_bytes
        self._needed_bytes, self._retained_bytes = needed_bytes, retained_bytes

    def grow(self, num_bytes: int, retained_bytes: int = 0) -> bool:
        """Take more for the present block, and retain a part of it; False, and nothing taken: it is too much."""
        max_retained_bytes = self._share.limit_bytes - self.max_needed_bytes
        if self._needed_bytes + num_bytes > self.max_needed_bytes:
            return False
        if retained_bytes and self._retained_bytes + retained_bytes > max_retained_bytes:
            return False
        self._share.acquire(num_bytes)
        self._held_bytes += num_bytes
        self._needed_bytes += num_bytes
        self._retained_bytes += retained_bytes
        return True

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._share.release(self._held_bytes)
        self._held_bytes = self._needed_bytes = self._retained_bytes = 0


class ParallelDecoder:
    """Decodes pieces on several threads, each with its own decoder, and gives them out in their order."""

    def __init__(self, scanned: ScannedFiles, share: Share, count: int) -> None:
        self._decoders = [scanned.decoder(part) for part in share.split(count)]
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="penstock-decode")
        self._free: SimpleQueue[BlockDecoder] = SimpleQueue()
        for decoder in self._decoders:
            self._free.put(decoder)

    def decode(self, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, list[pa.RecordBatch]]]:
        """The batches of each piece. An error comes in its turn."""

        def decode(piece: Piece) -> list[pa.RecordBatch]:
            decoder = self._free.get()
            try:
                return list(decoder.batches(piece.block, piece.first_row, piece.end_row))
            finally:
                self._free.put(decoder)

        waiting: deque[tuple[Piece, Future[list[pa.RecordBatch]]]] = deque()
        for piece in pieces:
            waiting.append((piece, self._pool.submit(decode, piece)))
            if len(waiting) > len(self._decoders):
                first, batches = waiting.popleft()
                yield first, batches.result()
        for first, batches in waiting:
            yield first, batches.result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for decoder in self._decoders:
            decoder.close()


class BlockStream(RecordStream):
    """The rows of one shard: blocks as they stand, or permuted per epoch by a seed, inside the reader's share."""

    def __init__(
        self, scanned: ScannedFiles, share: Share, seed: int | None = None, shard: Shard = ONE_SHARD
    ) -> None:
        self._scanned = scanned
        self._share = share
        self._shard = shard
        self.schema = scanned.columns.append(ROW_FIELD)
        self.order = {
            "files": list(scanned.fingerprints),
            "blocks": scanned.blocks.checksum,
            "seed": seed,
            "shard": [shard.index, shard.count],
        }
        self.position = StreamPosition(0)
        self.file_paths = [file.path for file in scanned.files]
        # Made here, though each iteration makes its own: what does not fit the share is refused before the first batch.
        self._decoder: BlockDecoder | ParallelDecoder = scanned.decoder(share)

    def close(self) -> None:
        self._decoder.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._decoder.close()
        blocks, position = self._scanned.blocks, self.position
        epoch = EpochOrder(blocks, self.order["seed"], position.epoch, self._shard, position.consumed)
        pieces = epoch.pieces(position.row)
        num_decoders = 1
        if decoder_bytes := self._scanned.sizes.decoder_bytes:
            num_decoders = min(max_decode_threads(), self._share.limit_bytes // decoder_bytes)
        decoded: Iterator[tuple[Piece, Iterable[pa.RecordBatch]]]
        alone: BlockDecoder | None = None
        if num_decoders > 1:
            self._decoder = parallel = ParallelDecoder(self._scanned, self._share, num_decoders)
            decoded = parallel.decode(pieces)
        else:
            self._decoder = alone = decoder = self._scanned.decoder(self._share)
            decoded = (
                (piece, decoder.batches(piece.block, piece.first_row, piece.end_row)) for piece in pieces
            )
        with closing(self._decoder), closing(decoded):  # type: ignore[type-var]
            for piece, batches in decoded:
                file_index = int(blocks.file_index[piece.block])
                first_row = int(blocks.first_row[piece.block]) + piece.first_row
                done = 0
                if alone is not None:
                    # All cores for decoding would take the one that rows are used on, unless that has to wait for them.
                    alone.use_threads = self.num_waiting is not None and self.num_waiting() < _ENOUGH_WAITING
                for rows in batches:
                    batch = with_row_ids(rows, file_index, first_row + done)
                    if piece.mask is not None:
                        batch = batch.filter(pa.array(piece.mask[done : done + rows.num_rows]))
                    done += rows.num_rows
                    self.position = self.position.at(self.position.row + batch.num_rows)
                    if batch.num_rows:
                        yield batch
