"""Share of pairs of rows that are predicted in the right order: of the whole set, in batches, and inside groups.

All pairs are counted, in n log n: drawing some of them costs more from about ten thousand rows on, and is less exact.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, DataError
from penstock.metrics.grouped import GroupedMetric, Totals
from penstock.metrics.inputs import number_rows
from penstock.metrics.metric import MemoryNeeds, Values, gathered
from penstock.metrics.order import order_codes, segment_starts, sorted_keys
from penstock.metrics.pair_kernels import count_right_pairs
from penstock.metrics.spool import LIMIT_BYTES, Rows
from penstock.metrics.sums import SumsMetric
from penstock.readers.hashes import mixed
from penstock.runtime.world import Collectives

MAX_ROWS = 1 << 20
"""Rows that are kept of the whole set; half of them differ by about 1e-3 from all rows."""
MIN_ROWS = 1 << 16
"""Rows that are kept where memory is short; half of them differ by about 4e-3 from all rows."""
MAX_EXACT_ROWS = 1 << 25
"""Rows that `exact` keeps."""
ROW_BYTES = 72
"""Of each row while pairs are counted: measured 48, and 65 where predictions or labels need all bits of a float64."""
_ROW = np.dtype([("preds", np.float64), ("target", np.float64), ("lots", np.uint64)])
_EVERY_LOT = 2**64 - 1


def pair_words(preds: NDArray[Any], target: NDArray[Any]) -> NDArray[np.uint64]:
    """A word for each row: the order of its label, then that of its prediction, reversed."""
    words = order_codes(target).astype(np.uint64)
    words <<= np.uint64(32)
    words |= ~order_codes(preds)
    return words


class XAUC(SumsMetric):
    """Share of pairs i < j with (t_i - t_j)(p_i - p_j) > 0; a tie on either side counts as wrong.

    Over the whole set, rows are kept up to `max_rows`, beyond that a uniform sample of them, and all their pairs are
    counted. `exact` refuses more rows than it can hold. `in_batch` counts the pairs inside each batch and depends on
    how rows are cut into batches. `sample_ratio` and `max_pairs`, by which other implementations draw pairs, change
    nothing.

    A row of the sample has a low lot, a hash of the seed, the row's number and the row. So every row is as likely to be
    kept, nothing depends on batches, and ranks sample without knowing of each other. All rows up to some lot are there:
    two samples are merged below the lots of both, and a saved one goes on in one that may keep more, or fewer.
    """

    name = "xauc"
    columns = ("preds", "target", "lots")

    def __init__(
        self,
        in_batch: bool = False,
        sample_ratio: float = 1e-3,
        max_pairs: int | None = None,
        exact: bool = False,
        pair_weight: bool = True,
        *,
        max_rows: int | None = None,
        seed: int = 0,
    ) -> None:
        if in_batch and exact:
            raise DataError("xauc: in_batch and exact exclude each other; leave one out")
        self.in_batch, self.exact, self._pair_weight = in_batch, exact, pair_weight
        self.settings = {"in_batch": in_batch, "exact": exact, "pair_weight": pair_weight, "seed": seed}
        self._max_rows, self._seed = max_rows or (MAX_EXACT_ROWS if exact else MAX_ROWS), seed
        # Of batches: right pairs, pairs, and batches with a pair; and the sum of their shares.
        super().__init__({"counts": np.zeros(3, np.int64), "sum_of_shares": np.float64, "num_seen": np.int64})
        self.reset()
        _num_right_pairs(*np.zeros((2, 1)))  # compiled before a plan measures the process

    def update(self, preds: Values, target: Values) -> None:
        predicted, labels, num_left_out = number_rows(preds, target, self.name)
        self._sums["num_left_out"] += num_left_out
        if not self.in_batch:
            numbers = np.arange(len(labels), dtype=np.uint64) + self._sums["num_seen"].astype(np.uint64)
            lots = mixed(numbers + np.uint64(self._seed % 2**64))
            for values in (predicted, labels):
                lots = mixed(lots ^ values.view(np.uint64))
            self._sums["num_seen"] += len(labels)
            self._keep(_rows_of(predicted, labels, lots))
        elif pairs := _num_pairs(len(predicted)):
            right = _num_right_pairs(predicted, labels)
            self._sums["counts"] += (right, pairs, 1)
            self._sums["sum_of_shares"] += right / pairs

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._lower(other._max_lot)
        for rows in other._chunks:
            self._keep(rows)

    def reduced(self, collectives: Collectives) -> Self:
        return gathered(self, collectives)

    def _value(self) -> float:
        if not self.in_batch:
            rows = self._kept()
            return _num_right_pairs(rows["preds"], rows["target"]) / _num_pairs(len(rows))
        right, pairs, batches = self._sums["counts"]
        return float(right / pairs if self._pair_weight else self._sums["sum_of_shares"] / batches)

    def reset(self) -> None:
        super().reset()
        self._chunks: list[NDArray[np.void]] = []
        self._num_held, self._max_lot = 0, _EVERY_LOT

    def _kept(self) -> NDArray[np.void]:
        self._chunks = [np.concatenate([np.empty(0, _ROW), *self._chunks])]
        return self._chunks[0]

    def _keep_again(self, *columns: NDArray[Any]) -> None:
        if 0 < len(columns[2]) < self._sums["num_seen"]:
            self._max_lot = (1 << int(columns[2].max()).bit_length()) - 1
        self._keep(_rows_of(*columns))

    def _keep(self, rows: NDArray[np.void]) -> None:
        """Keep these rows; where they become too many, those with the lower half of the lots."""
        self._chunks.append(rows if self._max_lot == _EVERY_LOT else rows[rows["lots"] <= self._max_lot])
        self._num_held += len(self._chunks[-1])
        if self.exact and self._num_held > self._max_rows:
            raise BudgetExceeded(
                f"xauc: exact holds at most {self._max_rows:,} rows and there are more; "
                "leave exact out, and the pairs of a sample of the rows are counted, or raise memory.limit"
            )
        while self._num_held > self._max_rows:
            self._lower(self._max_lot >> 1)

    def _lower(self, max_lot: int) -> None:
        if max_lot < self._max_lot:
            self._max_lot = max_lot
            self._chunks = [rows[rows["lots"] <= max_lot] for rows in self._chunks]
            self._num_held = sum(map(len, self._chunks))

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """Pairs of batches are counted at once; exact needs all rows, a sample as many as fit."""
        if self.in_batch:
            return MemoryNeeds(0, 0)
        min_rows, max_rows = (MAX_EXACT_ROWS, MAX_EXACT_ROWS) if self.exact else (MIN_ROWS, MAX_ROWS)
        return MemoryNeeds(ROW_BYTES * min(num_rows, min_rows), ROW_BYTES * min(num_rows, max_rows))

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        self._max_rows = max(2, min(self._max_rows, limit_bytes // ROW_BYTES))

    @property
    def held_bytes(self) -> int:
        return _ROW.itemsize * self._num_held

    @property
    def computing_bytes(self) -> int:
        return ROW_BYTES * self._num_held

    @property
    def undefined_because(self) -> str | None:
        if self.in_batch:
            return None if self._sums["counts"][1] else "no batch with two rows"
        return None if self._num_held > 1 else ("one row only" if self._sums["num_seen"] else "no rows")

    @property
    def remark(self) -> str | None:
        """How many rows the value is of, where these are not all."""
        num_seen = int(self._sums["num_seen"])
        return f"of {self._num_held:,} of {num_seen:,} rows" if self._num_held < num_seen else None


def _rows_of(*columns: NDArray[Any]) -> NDArray[np.void]:
    rows = np.empty(len(columns[0]), _ROW)
    for name, column in zip(XAUC.columns, columns, strict=True):
        rows[name] = column
    return rows


def _num_pairs(num_rows: int) -> int:
    return num_rows * (num_rows - 1) // 2


def _num_right_pairs(preds: NDArray[Any], target: NDArray[Any]) -> int:
    return int(count_right_pairs(pair_words(preds, target), np.array([0, len(preds)]))[0])


class GroupedXAUC(GroupedMetric):
    """XAUC of each group with two rows or more, over all its pairs, weighted by its rows.

    `max_pairs_per_group`, up to which other implementations draw pairs, changes nothing.
    """

    name = "grouped_xauc"
    target_type = np.float64
    needed = "two rows or more"

    def __init__(
        self, max_pairs_per_group: int = 100, *, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None
    ) -> None:
        super().__init__(limit_bytes=limit_bytes, folder=folder)
        _num_right_pairs(*np.zeros((2, 1)))  # compiled before a plan measures the process

    def _labels(self, target: NDArray[Any]) -> NDArray[Any]:
        labels = target if target.dtype == np.float32 else target.astype(np.float64)
        if np.isnan(labels).any():
            raise DataError(
                f"{self.name}: the label of row {np.flatnonzero(np.isnan(labels))[0]} is not a number"
            )
        return labels

    def _totals_of(self, rows: Rows) -> Totals:
        order, keys = sorted_keys(np.array(rows["key"]))
        starts = segment_starts(keys)
        words = pair_words(rows["pred"], rows["target"])[order]
        bounds = np.append(starts, len(keys))
        sizes, right = np.diff(bounds), count_right_pairs(words, bounds)
        counts = sizes > 1
        sizes, right = sizes[counts], right[counts]
        shares = right / (sizes * (sizes - 1) // 2)
        return np.array([np.sum(shares * sizes), np.sum(sizes), len(sizes), len(starts)], np.float64)
