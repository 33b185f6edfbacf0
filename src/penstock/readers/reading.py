"""The stream over the blocks of any format: order, shards, places and the origin of rows.

Formats whose decoder does the work of one core (text and records) are decoded by several threads at once: decoding
releases the interpreter, and a block is small, so that one that waits for its turn takes little.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from queue import SimpleQueue

import pyarrow as pa

from penstock.config.errors import CheckpointError
from penstock.readers.blocks import Shard
from penstock.readers.fingerprints import START_ANEW, check_same_files, check_same_seed
from penstock.readers.order import EpochOrder, Piece
from penstock.readers.origin import ROW_FIELD, with_row_ids
from penstock.readers.scan import BlockDecoder, ScannedFiles
from penstock.readers.stream import RecordStream, StreamPosition
from penstock.runtime.budget import Share
from penstock.runtime.world import State, max_decode_threads

ONE_SHARD = Shard()
_ENOUGH_WAITING = 2
"""Batches that wait: with so many, decoding need not hurry."""


def read_blocks(
    scanned: ScannedFiles, share: Share, seed: int | None = None, shard: Shard = ONE_SHARD
) -> "BlockStream":
    """The rows of one shard: blocks as they stand, or permuted per epoch by a seed.

    The reader holds no more than its share.
    """
    return BlockStream(scanned, share, seed, shard)


class ParallelDecoder:
    """Decodes pieces on several threads, each with a decoder of its own, and gives them out in their order."""

    def __init__(self, scanned: ScannedFiles, share: Share, count: int) -> None:
        self._decoders = [scanned.decoder(part) for part in share.split(count)]
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="penstock-decode")
        self._free: SimpleQueue[BlockDecoder] = SimpleQueue()
        for decoder in self._decoders:
            self._free.put(decoder)

    def decode(self, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, list[pa.RecordBatch]]]:
        """The batches of each piece. An error comes in its turn."""
        waiting: deque[tuple[Piece, Future[list[pa.RecordBatch]]]] = deque()
        for piece in pieces:
            waiting.append((piece, self._pool.submit(self._decode, piece)))
            if len(waiting) > len(self._decoders):
                first, batches = waiting.popleft()
                yield first, batches.result()
        for first, batches in waiting:
            yield first, batches.result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for decoder in self._decoders:
            decoder.close()

    def _decode(self, piece: Piece) -> list[pa.RecordBatch]:
        decoder = self._free.get()
        try:
            return list(decoder.batches(piece.block, piece.first_row, piece.end_row))
        finally:
            self._free.put(decoder)


class BlockStream(RecordStream):
    """The stream that `read_blocks` gives."""

    def __init__(self, scanned: ScannedFiles, share: Share, seed: int | None, shard: Shard) -> None:
        self._scanned = scanned
        self._share = share
        self._seed = seed
        self._shard = shard
        self._schema = scanned.columns.append(ROW_FIELD)
        self._order: State = {
            "files": list(scanned.fingerprints),
            "blocks": scanned.blocks.checksum,
            "seed": seed,
            "shard": [shard.index, shard.count],
        }
        # Made here, though each iteration makes its own: what does not fit the share is told before the first batch.
        self._decoder: BlockDecoder | ParallelDecoder = scanned.decoder(share)
        self.seek(StreamPosition(0))

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def order(self) -> State:
        return self._order

    @property
    def position(self) -> StreamPosition:
        return self._start.at(self._row)

    @property
    def num_rows(self) -> int:
        """Rows of this shard in this epoch."""
        return self._sequence.num_rows

    def seek(self, position: StreamPosition) -> None:
        self._start = position
        self._row = position.row
        self._sequence = EpochOrder(
            self._scanned.blocks, self._seed, position.epoch, self._shard, position.consumed
        )

    def close(self) -> None:
        self._decoder.close()

    def check_order(self, saved: State) -> None:
        """The files, the seed and the shard must be as they were."""
        check_same_files(saved["files"], self._scanned.fingerprints, self._scanned.files)
        check_same_seed(saved["seed"], self._seed)
        if saved["blocks"] != self._order["blocks"]:
            raise CheckpointError(
                "the position was saved with other blocks of the same files; read them with the version that saved "
                f"it, or {START_ANEW}"
            )
        if saved["shard"] != self._order["shard"]:
            (old_index, old_count), (index, count) = saved["shard"], self._order["shard"]
            raise CheckpointError(
                f"the position is of shard {old_index} of {old_count}, this is shard {index} of {count}; load the "
                "positions of all shards together"
            )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._decoder.close()
        pieces = self._sequence.pieces(self._row)
        decoder_bytes = self._scanned.decoder_bytes
        num_decoders = (
            min(max_decode_threads(), self._share.limit_bytes // decoder_bytes) if decoder_bytes else 1
        )
        decoded: Iterator[tuple[Piece, Iterable[pa.RecordBatch]]]
        if num_decoders > 1:
            self._decoder = opened = ParallelDecoder(self._scanned, self._share, num_decoders)
            decoded = opened.decode(pieces)
        else:
            self._decoder = decoder = self._scanned.decoder(self._share)
            decoded = ((piece, self._decode(decoder, piece)) for piece in pieces)
        closing_decoder = self._decoder
        try:
            with closing(decoded):  # type: ignore[type-var]
                for piece, batches in decoded:
                    yield from self._rows_of(piece, batches)
        finally:
            closing_decoder.close()

    def _decode(self, decoder: BlockDecoder, piece: Piece) -> Iterator[pa.RecordBatch]:
        # All cores for decoding would take the one that rows are used on, unless that has to wait for them.
        decoder.in_hurry = self.num_waiting is not None and self.num_waiting() < _ENOUGH_WAITING
        return decoder.batches(piece.block, piece.first_row, piece.end_row)

    def _rows_of(self, piece: Piece, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a piece; the position is moved before each batch is given out."""
        blocks = self._scanned.blocks
        file_index = int(blocks.file_index[piece.block])
        block_start = int(blocks.first_row[piece.block])
        done = 0
        for rows in batches:
            batch = with_row_ids(rows, file_index, block_start + piece.first_row + done)
            if piece.wanted is not None:
                batch = batch.filter(pa.array(piece.wanted[done : done + rows.num_rows]))
            done += rows.num_rows
            self._row += batch.num_rows
            if batch.num_rows:
                yield batch
