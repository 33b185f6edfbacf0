"""Mix rows inside windows, in an order that depends on nothing but the source's, a seed and the window's number.

Nothing of a window is saved: when a run continues, its rows are read again and the same permutation gives the
rest.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import CheckpointError
from penstock.data.quality import ShuffleQuality
from penstock.data.row_cost import SequenceLength
from penstock.data.stage import RowBuffer, Stage
from penstock.data.window import RowStore
from penstock.readers.order import Int64Array, derive_generator
from penstock.readers.reading import START_ANEW
from penstock.readers.stream import RecordStream, StreamPosition
from penstock.runtime.budget import Share
from penstock.runtime.world import State

_PIECE_ROWS = 1024
"""At least so many rows are given out at a time."""


@dataclass(frozen=True, slots=True)
class Bucketing:
    """By which length rows are brought together, and in runs of how many rows: those of a batch."""

    length: SequenceLength
    run_rows: int

    @property
    def state(self) -> State:
        length = self.length
        return {"bucket_by": [length.column, length.separator, length.longest], "run_rows": self.run_rows}

    def window_rows(self, num_rows: int) -> int:
        """A window of whole runs that is no larger than this one, so that batches do not reach into the next."""
        return num_rows - num_rows % self.run_rows if num_rows > self.run_rows else num_rows

    def lengths_of(self, batches: Iterable[pa.RecordBatch]) -> Int64Array:
        return np.concatenate([np.empty(0, np.int64), *(self.length.of(batch) for batch in batches)])


def by_length(
    rows: Int64Array, lengths: Int64Array, run_rows: int, generator: np.random.Generator
) -> Int64Array:
    """Rows in random order, brought into runs of similar length; `lengths` are those of all rows by their number.

    Rows of equal length stay in random order, and so do the runs. Where the rows are no whole number of runs, the short
    one is cut out at a random place and comes last.
    """
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    num_runs, num_left = divmod(len(rows), run_rows)
    short_start = int(generator.integers(num_runs + 1)) * run_rows
    short = rows[short_start : short_start + num_left]
    runs = np.delete(rows, np.s_[short_start : short_start + num_left]).reshape(num_runs, run_rows)
    return np.concatenate([runs[generator.permutation(num_runs)].ravel(), short])


def window_order(
    order: Mapping[str, Any],
    position: StreamPosition,
    window: int,
    num_rows: int,
    lengths: Int64Array | None = None,
) -> Int64Array:
    """In which order the rows of a window are drawn; `order` is that of a shuffled stream.

    `lengths` are those of the rows of the window, where rows are brought together by them. Of the position, the epoch
    counts, and the rows that were done before this stream took over: none, unless the number of shards changed on
    the way.
    """
    shard = order.get("shard", (0, 1))
    num_done = 0 if position.consumed is None else position.consumed.num_rows
    generator = derive_generator("rows", order["shuffle"]["seed"], position.epoch, window, *shard, num_done)
    rows = generator.permutation(num_rows)
    return rows if lengths is None else by_length(rows, lengths, order["shuffle"]["run_rows"], generator)


class Shuffle(Stage):
    """The rows of the source, permuted in windows of `num_rows` rows, whose bytes are leased from the share.

    At most one window exists at a time, and the rows that were given out last: whole batches of `batch_rows` rows,
    where batches are cut by rows, so that cutting copies nothing. The order of blocks, which mixes over longer
    distances, is the reader's. With `bucketing`, rows of similar length come together, and windows are of whole runs.

    `as_views` is for consumers that let go of a batch before they take the next: where windows are whole batches,
    such a batch is not copied, and keeps its window. `quality` sees what is drawn.
    """

    def __init__(
        self,
        source: RecordStream,
        num_rows: int,
        seed: int,
        share: Share | None = None,
        bucketing: Bucketing | None = None,
        *,
        batch_rows: int | None = None,
        as_views: bool = False,
        quality: ShuffleQuality | None = None,
    ) -> None:
        super().__init__(source)
        self._bucketing = bucketing
        windows: State = {"num_rows": num_rows, "seed": seed}
        if bucketing is not None:
            bucketing.length.check(source.schema)
            num_rows = bucketing.window_rows(num_rows)
            windows |= {"num_rows": num_rows} | bucketing.state
        self._num_rows = num_rows
        self._batch_rows = batch_rows or _PIECE_ROWS
        self._piece_rows = self._batch_rows * max(1, _PIECE_ROWS // self._batch_rows)
        # A batch of two windows would have to be joined, which copies it.
        self._as_views = as_views and batch_rows is not None and num_rows % batch_rows == 0
        self._quality = quality
        self._share = share
        self._held_bytes = 0
        self._order = source.order | {"shuffle": windows}

    @property
    def order(self) -> State:
        return self._order

    def check_order(self, saved: State) -> None:
        super().check_order(saved)
        was, present = saved.get("shuffle") or {}, self._order["shuffle"]
        for name in present | was:
            if was.get(name) != present.get(name):
                raise CheckpointError(
                    f"the position was saved with shuffle {name} {was.get(name)} but the run has "
                    f"{present.get(name)}; set data_config.shuffle_buffer, bucket_by, batch_size and seed as they "
                    f"were, or {START_ANEW}"
                )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        window, num_drawn = divmod(self._position.row, self._num_rows)
        self._source.seek(self._position.at(window * self._num_rows))
        rows = RowBuffer(iter(self._source))
        store = RowStore(self.schema, self._num_rows)
        # An iteration that was left alone would hold its bytes for ever.
        self._hold(0)
        try:
            while self._fill(store, rows, window):
                self._hold(store.num_bytes)
                for start in range(num_drawn, store.num_rows, self._piece_rows):
                    end = min(start + self._piece_rows, store.num_rows)
                    self._position = self._position.at(self._position.row + end - start)
                    piece = store.rows(start, end, self._as_views)
                    if self._quality is not None:
                        self._quality.see(piece.slice(0, self._batch_rows))
                    yield piece
                    del piece
                window, num_drawn = window + 1, 0
        finally:
            self._hold(0)

    def _fill(self, store: RowStore, rows: RowBuffer, window: int) -> bool:
        """Collect a window and bring it into its order; False at the end of the epoch."""
        lengths: list[Int64Array] = []

        def pieces() -> Iterator[pa.RecordBatch]:
            for piece in rows.pieces(self._num_rows):
                if self._bucketing is not None:
                    lengths.append(self._bucketing.length.of(piece))
                yield piece

        store.fill(pieces())
        known = np.concatenate(lengths) if lengths else None
        store.permute(window_order(self._order, self._position, window, store.num_rows, known))
        return store.num_rows > 0

    def _hold(self, num_bytes: int) -> None:
        if self._share is not None:
            self._share.release(self._held_bytes)
            self._held_bytes = 0
            self._share.acquire(num_bytes)
            self._held_bytes = num_bytes
