"""Mix rows inside windows, in an order that depends on nothing but seed, epoch and the window's number.

Nothing of a window is saved: when a run continues, its rows are read again and the same permutation gives the
rest.
"""

from collections.abc import Iterator

import pyarrow as pa

from penstock.batching.waiting import WaitingRows
from penstock.batching.window import Window
from penstock.config.errors import CheckpointError
from penstock.readers.order import derive_generator
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import Share
from penstock.runtime.state import State

_PIECES = 8
"""A window is drawn in so many pieces: what exists twice is one of them."""


def shuffle(source: RecordStream, num_rows: int, seed: int, share: Share | None = None) -> "Shuffle":
    """The rows of the source, permuted in windows of `num_rows` rows, whose bytes are leased from the share.

    At most one window and one drawn piece of it exist at a time. The order of blocks, which mixes over longer
    distances, is the reader's (`block_shuffle_seed`).
    """
    return Shuffle(source, num_rows, seed, share)


class Shuffle:
    """The stream that `shuffle` gives; its place: a window's first row, and the rows drawn from it."""

    def __init__(self, source: RecordStream, num_rows: int, seed: int, share: Share | None = None) -> None:
        if num_rows < 1:
            raise ValueError(f"a shuffle needs at least one row, not {num_rows}")
        self._source = source
        self._num_rows = num_rows
        self._piece_rows = -(-num_rows // _PIECES)
        self._seed = seed
        self._waiting = WaitingRows(source)
        self._window: Window | None = None
        self._share = share
        self._leased_bytes = 0
        self._epoch = self._index = self._num_drawn = 0

    @property
    def schema(self) -> pa.Schema:
        """The columns of the source."""
        return self._source.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Drawn rows from the present place on, an eighth of a window at a time."""
        source = iter(self._source)
        while self._window is not None or self._fill(source):
            assert self._window is not None
            yield self._draw(self._window)

    def _fill(self, source: Iterator[pa.RecordBatch]) -> bool:
        """Collect the window that begins at the present place; False at the end of the epoch."""
        start = self._waiting.place()
        pieces = self._waiting.take(source, self._num_rows)
        if not pieces:
            return False
        self._window_start = start
        self._window = Window(pieces)
        self._lease(self._window.num_bytes)
        generator = derive_generator("rows", self._seed, self._epoch, self._index)
        self._order = generator.permutation(self._window.num_rows)
        return True

    def _draw(self, window: Window) -> pa.RecordBatch:
        rows = window.take(self._order[self._num_drawn : self._num_drawn + self._piece_rows])
        self._num_drawn += rows.num_rows
        if self._num_drawn == window.num_rows:
            self._leave_window(self._epoch, self._index + 1, num_drawn=0)
        return rows

    def _lease(self, num_bytes: int) -> None:
        """Hold this many bytes of the share instead of those before."""
        if self._share is not None:
            self._share.release(self._leased_bytes)
            self._leased_bytes = 0
            self._share.acquire(num_bytes)
            self._leased_bytes = num_bytes

    def _leave_window(self, epoch: int, index: int, num_drawn: int) -> None:
        self._window = None
        self._lease(0)
        self._epoch = epoch
        self._index = index
        self._num_drawn = num_drawn

    def state_dict(self) -> State:
        """The place after the last rows drawn."""
        start = self._waiting.place() if self._window is None else self._window_start
        return {
            "window_start": start,
            "epoch": self._epoch,
            "window": self._index,
            "num_drawn": self._num_drawn,
            "num_rows": self._num_rows,
            "seed": self._seed,
        }

    def load_state_dict(self, state: State) -> None:
        """Go to a place that was saved with the same number of rows and the same seed."""
        for name, present in (("num_rows", self._num_rows), ("seed", self._seed)):
            if state[name] != present:
                raise CheckpointError(
                    f"the position was saved with shuffle {name} {state[name]} but the run has {present}; "
                    "set data_config.shuffle_buffer, batch_size and seed as they were, or start anew"
                )
        self._waiting.go_to(state["window_start"])
        self._leave_window(state["epoch"], state["window"], state["num_drawn"])

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self._waiting.set_epoch(epoch)
        self._leave_window(epoch, index=0, num_drawn=0)
