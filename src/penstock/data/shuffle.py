"""Mix rows inside windows, in an order that depends on nothing but the source's, a seed and the window's number.

Nothing of a window is saved: when a run continues, its rows are read again and the same permutation gives the
rest.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import CheckpointError
from penstock.data.bucketing import Bucketing, by_length
from penstock.data.stage import Stage, WaitingRows
from penstock.data.window import RowStore
from penstock.readers.blocks import Int64Array
from penstock.readers.fingerprints import START_ANEW
from penstock.readers.sequence import derive_generator
from penstock.readers.stream import Place, RecordStream
from penstock.runtime.budget import Share
from penstock.runtime.kernels import kernel
from penstock.runtime.state import State

_PIECE_ROWS = 8192
"""Rows that are given out at a time, unless told otherwise."""


def shuffle(
    source: RecordStream,
    num_rows: int,
    seed: int,
    share: Share | None = None,
    bucketing: Bucketing | None = None,
    piece_rows: int = _PIECE_ROWS,
    as_views: bool = False,
) -> "Shuffle":
    """The rows of the source, permuted in windows of `num_rows` rows, whose bytes are leased from the share.

    At most one window exists at a time, and the `piece_rows` rows that were given out last. Nothing is copied again
    when batches are cut, where they have as many rows as the pieces and windows are multiples of them. The order of
    blocks, which mixes over longer distances, is the reader's. With `bucketing`, rows of similar length come together,
    and windows are of whole runs. `as_views` is for consumers that let go of a batch before they take the next: such a
    batch is not copied, and keeps its window.
    """
    return Shuffle(source, num_rows, seed, share, bucketing, piece_rows, as_views)


def window_order(
    order: Mapping[str, Any],
    place: Place,
    window: int,
    num_rows: int,
    lengths: Int64Array | None = None,
) -> Int64Array:
    """In which order the rows of a window are drawn; `order` is that of a shuffled stream.

    `lengths` are those of the rows of the window, where rows are brought together by them. Of the place, the epoch
    counts, and the rows that were done before this stream took over: none, unless the number of shards changed on
    the way.
    """
    shard = order.get("shard", (0, 1))
    num_done = 0 if place.done is None else place.done.num_rows
    generator = derive_generator("rows", order["shuffle"]["seed"], place.epoch, window, *shard, num_done)
    rows = generator.permutation(num_rows)
    return rows if lengths is None else by_length(rows, lengths, order["shuffle"]["run_rows"], generator)


class Shuffle(Stage):
    """The stream that `shuffle` gives."""

    def __init__(
        self,
        source: RecordStream,
        num_rows: int,
        seed: int,
        share: Share | None = None,
        bucketing: Bucketing | None = None,
        piece_rows: int = _PIECE_ROWS,
        as_views: bool = False,
    ) -> None:
        if num_rows < 1:
            raise ValueError(f"a shuffle needs at least one row, not {num_rows}")
        super().__init__(source)
        self._bucketing = bucketing
        windows: State = {"num_rows": num_rows, "seed": seed}
        if bucketing is not None:
            bucketing.length.check(source.schema)
            num_rows = bucketing.window_rows(num_rows)
            windows |= {"num_rows": num_rows} | bucketing.state
        self._num_rows = num_rows
        self._piece_rows = piece_rows
        self._as_views = as_views
        self._share = share
        self._held_bytes = 0
        self._order = source.order | {"shuffle": windows}

    @property
    def order(self) -> State:
        """The source's, and the windows."""
        return self._order

    def check_order(self, saved: State) -> None:
        """The windows and the seed must be as they were."""
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
        """Drawn rows from the present place on."""
        window, num_drawn = divmod(self._place.row, self._num_rows)
        self._source.go_to(self._place.at(window * self._num_rows))
        waiting = WaitingRows(iter(self._source))
        store = RowStore(self.schema, self._num_rows)
        # An iteration that was left alone would hold its bytes for ever.
        self._hold(0)
        try:
            while self._fill(store, waiting, window):
                yield from self._draw(store, num_drawn)
                window, num_drawn = window + 1, 0
        finally:
            self._hold(0)

    def _fill(self, store: RowStore, waiting: WaitingRows, window: int) -> bool:
        """Collect a window and bring it into its order; False at the end of the epoch."""
        lengths: list[Int64Array] = []
        store.fill(self._seen(waiting.pieces(self._num_rows), lengths))
        known = np.concatenate(lengths) if lengths else None
        store.permute(window_order(self._order, self._place, window, store.num_rows, known))
        return store.num_rows > 0

    def _seen(self, pieces: Iterator[pa.RecordBatch], lengths: list[Int64Array]) -> Iterator[pa.RecordBatch]:
        """The pieces, whose lengths are noted where rows are brought together by them."""
        for piece in pieces:
            if self._bucketing is not None:
                lengths.append(self._bucketing.length.of(piece))
            yield piece

    def _draw(self, store: RowStore, num_drawn: int) -> Iterator[pa.RecordBatch]:
        """The rows of a window that are not drawn yet."""
        self._hold(store.num_bytes)
        for start in range(num_drawn, store.num_rows, self._piece_rows):
            end = min(start + self._piece_rows, store.num_rows)
            self._place = self._place.at(self._place.row + end - start)
            yield store.rows(start, end, self._as_views)

    def _hold(self, num_bytes: int) -> None:
        """Lease so much of the share, instead of what was leased before."""
        if self._share is not None:
            self._share.release(self._held_bytes)
            self._held_bytes = 0
            self._share.acquire(num_bytes)
            self._held_bytes = num_bytes


@kernel
def gather(values: Any, order: Any, out: Any) -> None:
    """Bring the rows at these places of a column of numbers to `out`, one after the other."""
    for row in range(len(order)):
        out[row] = values[order[row]]
