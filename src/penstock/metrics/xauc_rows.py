"""A bounded, uniform sample of rows: all rows while they fit."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError
from penstock.features.hashes import mixed
from penstock.metrics.metric import MetricState

Numbers = NDArray[np.float64]
Columns = tuple[Numbers, Numbers, NDArray[np.uint64]]

_NAMES = ("preds", "target", "lots")
_DTYPES: tuple[type[Any], ...] = (np.float64, np.float64, np.uint64)
ROWS_STATE = (*_NAMES, "num_seen")
"""The names in the state of a sample."""
_EVERY_LOT = np.uint64(2**64 - 1)


class RowSample:
    """The `max_rows` rows with the lowest lots; a lot is a hash of the seed, the row's place and the row itself.

    So every row is as likely to be kept, nothing depends on how rows were cut into batches, and rows of different ranks
    draw different lots without knowing of each other. All rows up to some lot are there: two samples are joined by
    keeping what is below the lots of both, and a saved one goes on in one that may keep more, or fewer.
    """

    def __init__(self, max_rows: int, seed: int) -> None:
        if max_rows < 2:
            raise DataError(f"xauc: at most {max_rows} rows; a pair needs 2")
        self.max_rows, self.seed = max_rows, seed
        self.reset()

    def add(self, preds: Numbers, target: Numbers) -> None:
        """Offer rows, in the order in which they come."""
        places = np.arange(self.num_seen, self.num_seen + len(preds), dtype=np.uint64)
        lots = mixed(places + np.uint64(self.seed % 2**64))
        for values in (preds, target):
            lots = mixed(lots ^ values.view(np.uint64))
        self.num_seen += len(preds)
        self._keep((preds, target, lots))

    def merge(self, other: Self) -> None:
        """Offer the rows of another sample."""
        other._drop_highest()
        self.num_seen += other.num_seen
        self._lower(other._below)
        self._keep(other._columns())

    def rows(self) -> tuple[Numbers, Numbers]:
        """Predictions and labels of the kept rows, in the order in which they came."""
        self._drop_highest()
        preds, target, _ = self._columns()
        return preds, target

    def reset(self) -> None:
        """Forget every row."""
        self.num_seen = 0
        self._chunks: list[Columns] = []
        self._num_held = 0
        self._below = _EVERY_LOT

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows that are held."""
        return self._num_held * sum(np.dtype(kind).itemsize for kind in _DTYPES)

    @property
    def num_held(self) -> int:
        """Rows that are held: up to twice as many as are kept."""
        return self._num_held

    def state_dict(self) -> MetricState:
        """The kept rows with their lots, and how many there were."""
        self._drop_highest()
        arrays = dict(zip(_NAMES, self._columns(), strict=True))
        return {**arrays, "num_seen": np.array(self.num_seen, dtype=np.int64)}

    def load_state_dict(self, state: MetricState) -> None:
        """Go on from saved rows."""
        if len({len(state[name]) for name in _NAMES}) != 1:
            raise CheckpointError(f"xauc: the saved {', '.join(_NAMES)} differ in length")
        self.reset()
        self.num_seen = int(state["num_seen"])
        preds, target, lots = (
            np.array(state[name], dtype) for name, dtype in zip(_NAMES, _DTYPES, strict=True)
        )
        if self.num_seen > len(lots) > 0:
            self._below = lots.max()
        self._keep((preds, target, lots))

    def _columns(self) -> Columns:
        """All rows that are held, as one array of each column."""
        if len(self._chunks) != 1:
            parts = zip(*self._chunks, strict=True) if self._chunks else ([], [], [])
            preds, target, lots = (
                np.concatenate([np.zeros(0, dtype), *part])
                for part, dtype in zip(parts, _DTYPES, strict=True)
            )
            self._chunks = [(preds, target, lots)]
        return self._chunks[0]

    def _keep(self, columns: Columns) -> None:
        if self._below != _EVERY_LOT:
            columns = _chosen(columns, columns[2] <= self._below)
        self._chunks.append(columns)
        self._num_held += len(columns[0])
        if self._num_held > 2 * self.max_rows:
            self._drop_highest()

    def _drop_highest(self) -> None:
        if self._num_held <= self.max_rows:
            return
        lots = self._columns()[2]
        self._lower(np.partition(lots, self.max_rows - 1)[self.max_rows - 1])

    def _lower(self, below: np.uint64) -> None:
        """Let go of the rows with higher lots, now and later."""
        if below >= self._below:
            return
        self._below = below
        columns = self._columns()
        # Two rows with one lot are too rare to matter, but not to be counted.
        kept = np.flatnonzero(columns[2] <= below)[: self.max_rows]
        self._chunks = [_chosen(columns, kept)]
        self._num_held = len(kept)


def _chosen(columns: Columns, which: NDArray[np.bool_] | NDArray[np.int64]) -> Columns:
    preds, target, lots = columns
    return preds[which], target[which], lots[which]
