"""Mix rows inside windows, in an order that depends on nothing but the source's, a seed and the window's number.

Nothing of a window is saved: when a run continues, its rows are read again and the same permutation gives the
rest.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.data.cut import Stage, split_rows
from penstock.data.row_cost import SequenceLength
from penstock.data.window import RowStore
from penstock.readers.order import Blocks, Int64Array, derive_generator
from penstock.readers.stream import ROW_BITS, ROW_COLUMN, RecordStream, StreamPosition
from penstock.runtime.budget import Share

_PIECE_ROWS = 1024
"""At least so many rows are given out at a time."""


@dataclass(frozen=True, slots=True)
class Bucketing:
    """By which length rows are brought together, and in runs of how many rows: those of a batch."""

    length: SequenceLength
    run_rows: int


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
    if lengths is None:
        return rows
    # Runs of similar length: rows of equal length stay in random order, and so do the runs. Where the rows are no whole
    # number of runs, the short one is cut out at random and comes last.
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    run_rows = order["shuffle"]["run_rows"]
    num_runs, num_left = divmod(num_rows, run_rows)
    start = int(generator.integers(num_runs + 1)) * run_rows
    short = np.s_[start : start + num_left]
    runs = np.delete(rows, short).reshape(num_runs, run_rows)
    return np.concatenate([runs[generator.permutation(num_runs)].ravel(), rows[short]])


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
        quality: "ShuffleQuality | None" = None,
    ) -> None:
        super().__init__(source)
        windows: dict[str, Any] = {"num_rows": num_rows, "seed": seed}
        if bucketing is not None:
            length, run_rows = bucketing.length, bucketing.run_rows
            length.check(source.schema)
            if num_rows > run_rows:  # whole runs, so that batches do not reach into the next window
                num_rows -= num_rows % run_rows
            bucket_by = [length.column, length.separator, length.longest]
            windows |= {"num_rows": num_rows, "bucket_by": bucket_by, "run_rows": run_rows}
        self.order = source.order | {"shuffle": windows}
        self._num_rows = num_rows
        self._bucketing = bucketing
        self._batch_rows = batch_rows or _PIECE_ROWS
        # A batch of two windows would have to be joined, which copies it.
        self._as_views = as_views and batch_rows is not None and num_rows % batch_rows == 0
        self._quality = quality
        self._share = share or Share("shuffle", sys.maxsize)
        self._held_bytes = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        window, num_drawn = divmod(self.position.row, self._num_rows)
        self._source.position = self.position.at(window * self._num_rows)
        store, lengths = RowStore(self.schema, self._num_rows), list[Int64Array]()
        try:
            for piece, is_last in split_rows(self._source, self._num_rows):
                store.append(piece)
                if self._bucketing is not None:
                    lengths.append(self._bucketing.length.of(piece))
                del piece
                if is_last:
                    yield from self._drawn(store, window, num_drawn, lengths)
                    window, num_drawn, lengths = window + 1, 0, []
            if store.num_rows:
                yield from self._drawn(store, window, num_drawn, lengths)
        finally:
            self._share.release(self._held_bytes)
            self._held_bytes = 0

    def _drawn(
        self, store: RowStore, window: int, num_drawn: int, lengths: list[Int64Array]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a window in their order, without those that were drawn before."""
        num_rows, known = store.num_rows, np.concatenate(lengths) if lengths else None
        num_bytes = store.permute(window_order(self.order, self.position, window, num_rows, known))
        # The window before, or one of an iteration that was left alone, which would hold its bytes for ever.
        self._share.release(self._held_bytes)
        self._held_bytes = 0
        self._share.acquire(num_bytes)
        self._held_bytes = num_bytes
        piece_rows = self._batch_rows * max(1, _PIECE_ROWS // self._batch_rows)
        for start in range(num_drawn, num_rows, piece_rows):
            end = min(start + piece_rows, num_rows)
            self.position = self.position.at(self.position.row + end - start)
            piece = store.rows(start, end, self._as_views)
            if self._quality is not None:
                self._quality.see(piece.slice(0, self._batch_rows))
            yield piece
            del piece


@dataclass(eq=False, slots=True)
class ShuffleQuality:
    """Looks at some of the batches of a run and tells how near their order is to an ideal shuffle.

    Memory does not grow with the batches seen. Batches that are not looked at cost nothing.
    """

    blocks: Blocks
    label: str | None = None
    """A column whose numbers should not go on from one row to the next."""
    every: int = 16
    """One batch in so many is looked at."""
    stretch_rows: int = 65_536
    """A block of more rows counts as several, since rows near each other are alike."""
    _num_seen: int = field(default=0, init=False)
    _num_looked_at: int = field(default=0, init=False)
    _coverage_sum: float = field(default=0.0, init=False)
    _num_pairs: int = field(default=0, init=False)
    _shift: float = field(default=0.0, init=False)
    _sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(5), init=False)
    """Of pairs of neighbouring labels: both, both squared, and their products."""

    def see(self, batch: pa.RecordBatch) -> None:
        is_skipped = self._num_seen % self.every > 0
        self._num_seen += 1
        if is_skipped or not batch.num_rows:
            return
        # The row ids at which stretches begin, ascending, and how many rows each has.
        blocks, per_block = self.blocks, -(-self.blocks.num_rows // self.stretch_rows)
        block = np.repeat(np.arange(len(per_block)), per_block)
        first_of_block = np.repeat(np.cumsum(per_block) - per_block, per_block)
        skipped = (np.arange(len(block)) - first_of_block) * self.stretch_rows
        first_ids = (blocks.file_index[block] << ROW_BITS) + blocks.first_row[block] + skipped
        num_rows = np.minimum(self.stretch_rows, blocks.num_rows[block] - skipped)
        # On how many stretches a draw of so many different rows falls when each row is equally likely: one is missed
        # with the probability that none of its n rows is among those drawn, the product of 1 - n / (N - i) over the
        # rows drawn so far, i. All factors are taken at the middle i: off by well under a thousandth of the result.
        rows_at_middle = int(num_rows.sum()) - (batch.num_rows - 1) / 2
        missed = np.clip(1 - num_rows / rows_at_middle, 0, None) ** batch.num_rows
        stretches = np.searchsorted(first_ids, np.asarray(batch.column(ROW_COLUMN)), side="right")
        self._coverage_sum += len(np.unique(stretches)) / float((1 - missed).sum())
        self._num_looked_at += 1
        column = None if self.label is None else batch.column(self.label)
        if column is None or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            return
        # Labels in their order; pairs with one that is not finite are left out.
        labels = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
        usable = np.isfinite(labels[:-1]) & np.isfinite(labels[1:])
        if not usable.any():
            return
        first, second = labels[:-1][usable], labels[1:][usable]
        if not self._num_pairs:
            # Sums of squares of numbers far from 0 would lose what differs in them.
            self._shift = float(first.mean())
        first, second = first - self._shift, second - self._shift
        self._num_pairs += len(first)
        self._sums += [first.sum(), second.sum(), first @ first, second @ second, first @ second]

    def score(self) -> dict[str, float]:
        """What was found so far; empty before the first batch.

        `block_coverage`: the blocks that a batch draws on, as a part of what it would be in an ideal shuffle; 1 is as
        good as ideal. `label_autocorrelation`: of the labels of neighbours in a batch, -1 to 1; 0 is ideal. It is left
        out where labels do not differ. `batches_looked_at`: how many batches this is from.
        """
        if not self._num_looked_at:
            return {}
        score = {"block_coverage": self._coverage_sum / self._num_looked_at}
        if self._num_pairs:
            first, second, first_squares, second_squares, products = self._sums / self._num_pairs
            variances = (first_squares - first**2) * (second_squares - second**2)
            if variances > 0:
                correlation = (products - first * second) / np.sqrt(variances)
                score["label_autocorrelation"] = float(np.clip(correlation, -1, 1))
        return score | {"batches_looked_at": self._num_looked_at}
