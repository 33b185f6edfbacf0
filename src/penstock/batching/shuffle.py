"""Mix rows inside windows, in an order that depends on nothing but the source's, a seed and the window's number.

Nothing of a window is saved: when a run continues, its rows are read again and the same permutation gives the
rest.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import pyarrow as pa

from penstock.batching.stage import Stage
from penstock.batching.waiting import WaitingRows
from penstock.batching.window import Window
from penstock.config.errors import CheckpointError
from penstock.readers.blocks import Int64Array
from penstock.readers.order import derive_generator
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import Share
from penstock.runtime.state import State

_PIECES = 8
"""A window is drawn in so many pieces: what exists twice is one of them."""


def shuffle(source: RecordStream, num_rows: int, seed: int, share: Share | None = None) -> "Shuffle":
    """The rows of the source, permuted in windows of `num_rows` rows, whose bytes are leased from the share.

    At most one window and one drawn piece of it exist at a time. The order of blocks, which mixes over longer
    distances, is the reader's.
    """
    return Shuffle(source, num_rows, seed, share)


def window_order(order: Mapping[str, Any], epoch: int, num_done: int, window: int, num_rows: int) -> Int64Array:
    """In which order the rows of a window are drawn; `order` is that of a shuffled stream.

    `num_done` are the rows of the epoch that were done before this stream took over, which is 0 unless the number
    of shards changed on the way.
    """
    shard = order.get("shard", (0, 1))
    generator = derive_generator("rows", order["shuffle"]["seed"], epoch, window, *shard, num_done)
    return generator.permutation(num_rows)


class Shuffle(Stage):
    """The stream that `shuffle` gives."""

    def __init__(self, source: RecordStream, num_rows: int, seed: int, share: Share | None = None) -> None:
        if num_rows < 1:
            raise ValueError(f"a shuffle needs at least one row, not {num_rows}")
        super().__init__(source)
        self._num_rows = num_rows
        self._piece_rows = -(-num_rows // _PIECES)
        self._share = share
        self._order = source.order | {"shuffle": {"num_rows": num_rows, "seed": seed}}

    @property
    def order(self) -> State:
        """The source's, and the windows."""
        return self._order

    def check_order(self, saved: State) -> None:
        """The windows and the seed must be as they were."""
        super().check_order(saved)
        was = saved.get("shuffle") or {"num_rows": None, "seed": None}
        for name, present in self._order["shuffle"].items():
            if was[name] != present:
                raise CheckpointError(
                    f"the position was saved with shuffle {name} {was[name]} but the run has {present}; "
                    "set data_config.shuffle_buffer, batch_size and seed as they were, or start anew"
                )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Drawn rows from the present place on, an eighth of a window at a time."""
        window, num_drawn = divmod(self._place.row, self._num_rows)
        self._source.go_to(self._place.at(window * self._num_rows))
        waiting = WaitingRows(iter(self._source))
        while pieces := waiting.take(self._num_rows):
            yield from self._draw(Window(pieces), window, num_drawn)
            window, num_drawn = window + 1, 0

    def _draw(self, rows: Window, window: int, num_drawn: int) -> Iterator[pa.RecordBatch]:
        """The rows of a window that are not drawn yet."""
        done = self._place.done
        num_done = 0 if done is None else done.num_rows
        order = window_order(self._order, self._place.epoch, num_done, window, rows.num_rows)
        with nullcontext() if self._share is None else self._share.lease(rows.num_bytes):
            for start in range(num_drawn, rows.num_rows, self._piece_rows):
                drawn = order[start : start + self._piece_rows]
                self._place = self._place.at(self._place.row + len(drawn))
                yield rows.take(drawn)
