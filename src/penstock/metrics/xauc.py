"""Share of pairs of rows that are predicted in the right order: of the whole set, in batches, and inside groups.

The pairs i < j of n rows are numbered k = j (j - 1) / 2 + i, so that 0 <= k < n (n - 1) / 2 and the pairs of the first
rows come first. Everything is integer arithmetic; nothing is as large as the number of pairs.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, DataError
from penstock.metrics.grouped import GroupedMetric, Totals
from penstock.metrics.grouped_auc import segment_starts
from penstock.metrics.inputs import number_rows
from penstock.metrics.metric import MemoryNeeds, Values, gathered
from penstock.metrics.spool import LIMIT_BYTES, Rows
from penstock.metrics.sums import SumsMetric
from penstock.readers.hashes import mixed
from penstock.runtime.world import Collectives

Indices = NDArray[Any]
"""Whole numbers: int64, or int32 where these will do."""
Words = NDArray[np.uint64]

MAX_ROWS = 1 << 20
"""Rows that are kept of the whole set. What is drawn from them differs by about 1e-3 from all rows."""
MIN_ROWS = 1 << 16
"""Rows that are kept where memory is short: what is drawn from them differs by about 4e-3 from all rows."""
MAX_EXACT_ROWS = 1 << 25
"""Rows whose pairs are counted exactly."""
SAMPLED_ROW_BYTES = 128
"""Of each row that is kept: twice as many are held before the highest lots go, and pairs are drawn from the rest."""
EXACT_ROW_BYTES = 80
"""Of each row while all pairs are counted: measured 73."""
MAX_DRAWS = 1 << 24
"""From so many pairs on, counting all pairs of the kept rows is faster than drawing."""
_BLOCK_PAIRS = 1 << 16
"""Pairs that are drawn at a time: about 5 MiB."""
_BLOCK_DRAWS = 1 << 17
"""Draws of many groups at a time: about 10 MiB."""
_SAMPLED = np.dtype([("preds", np.float64), ("target", np.float64), ("lots", np.uint64)])
_COLUMNS = ("preds", "target", "lots")
_EVERY_LOT = np.uint64(2**64 - 1)


class XAUC(SumsMetric):
    """Share of pairs i < j with (t_i - t_j)(p_i - p_j) > 0; a tie on either side counts as wrong.

    Over the whole set, rows are kept up to `max_rows` (beyond that a uniform sample of them), and `sample_ratio` of
    their pairs, or `max_pairs`, are drawn without repetition; all pairs, when that gives none or all, or when counting
    them all is faster. `exact` counts all pairs and refuses more rows than it can hold. `in_batch` counts all pairs
    inside each batch and depends on how rows are cut into batches.
    """

    name = "xauc"
    columns = _COLUMNS

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
        if not 0.0 < sample_ratio <= 1.0 or (max_pairs is not None and max_pairs < 1):
            raise DataError(
                f"xauc: sample_ratio {sample_ratio}, max_pairs {max_pairs}: above 0 and up to 1, and at least 1"
            )
        self.in_batch, self.exact, self._pair_weight = in_batch, exact, pair_weight
        self._sample_ratio, self._max_pairs, self._seed = sample_ratio, max_pairs, seed
        self.settings = {
            "in_batch": in_batch,
            "exact": exact,
            "pair_weight": pair_weight,
            "sample_ratio": sample_ratio,
            "max_pairs": max_pairs,
            "seed": seed,
        }
        self._rows = RowSample(max_rows or (MAX_EXACT_ROWS if exact else MAX_ROWS), seed)
        # Of batches: right pairs, pairs, and batches with a pair; and the sum of their shares.
        super().__init__({"counts": np.zeros(3, np.int64), "sum_of_shares": np.float64, "num_seen": np.int64})

    def update(self, preds: Values, target: Values) -> None:
        predicted, labels, num_left_out = number_rows(preds, target, self.name)
        self._sums["num_left_out"] += num_left_out
        pairs = num_pairs(len(predicted))
        if not self.in_batch:
            self._rows.add(predicted, labels)
            self._sums["num_seen"] += len(predicted)
            self._check_size()
        elif pairs:
            right = num_right_pairs(predicted, labels)
            self._sums["counts"] += (right, pairs, 1)
            self._sums["sum_of_shares"] += right / pairs

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._rows.merge(other._rows)
        self._check_size()

    def reduced(self, collectives: Collectives) -> Self:
        return gathered(self, collectives)

    def _value(self) -> float:
        if not self.in_batch:
            return self._share_of_rows()
        right, pairs, batches = self._sums["counts"]
        return float(right / pairs if self._pair_weight else self._sums["sum_of_shares"] / batches)

    def reset(self) -> None:
        super().reset()
        self._rows.reset()

    def _kept(self) -> NDArray[np.void]:
        return self._rows.rows()

    def _keep_again(self, *columns: NDArray[Any]) -> None:
        self._rows.restore(int(self._sums["num_seen"]), *columns)

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """Pairs of batches are counted at once; exact needs all rows, a sample as many as fit."""
        if self.in_batch:
            return MemoryNeeds(0, 0)
        if self.exact:
            needed = EXACT_ROW_BYTES * min(num_rows, MAX_EXACT_ROWS)
            return MemoryNeeds(needed, needed)
        return MemoryNeeds(
            SAMPLED_ROW_BYTES * min(num_rows, MIN_ROWS), SAMPLED_ROW_BYTES * min(num_rows, MAX_ROWS)
        )

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        row_bytes = EXACT_ROW_BYTES if self.exact else SAMPLED_ROW_BYTES
        self._rows.max_rows = max(2, min(self._rows.max_rows, limit_bytes // row_bytes))

    @property
    def held_bytes(self) -> int:
        return self._rows.held_bytes

    @property
    def computing_bytes(self) -> int:
        return EXACT_ROW_BYTES * self._rows.num_held

    @property
    def undefined_because(self) -> str | None:
        if self.in_batch:
            return None if self._sums["counts"][1] else "no batch with two rows"
        return None if self._rows.num_seen > 1 else ("one row only" if self._rows.num_seen else "no rows")

    def _check_size(self) -> None:
        if self.exact and self._rows.num_seen > self._rows.max_rows:
            raise BudgetExceeded(
                f"xauc: exact holds at most {self._rows.max_rows:,} rows and there are more; "
                "leave exact out, and pairs of a sample of the rows are counted, or raise memory.limit"
            )

    def _share_of_rows(self) -> float:
        rows = self._rows.rows()
        preds, labels = rows["preds"], rows["target"]
        pairs = num_pairs(len(rows))
        num_draws = self._max_pairs if self._max_pairs is not None else int(self._sample_ratio * pairs)
        if self.exact or not 0 < num_draws < min(pairs, MAX_DRAWS):
            return num_right_pairs(preds, labels) / pairs
        preds, labels = np.array(preds), np.array(labels)
        generator = np.random.default_rng(self._seed)
        start = generator.integers(0, pairs, 1)
        num_right = 0
        for first in range(0, num_draws, _BLOCK_PAIRS):
            draws = np.arange(first, min(first + _BLOCK_PAIRS, num_draws))
            noise = generator.integers(0, 2**64, len(draws), dtype=np.uint64)
            i, j = pairs_numbered(drawn_numbers(draws, num_draws, pairs, start, noise))
            # Compared, not subtracted: infinities are values, equal to themselves.
            rising = (preds[i] < preds[j]) & (labels[i] < labels[j])
            falling = (preds[i] > preds[j]) & (labels[i] > labels[j])
            num_right += int(np.count_nonzero(rising | falling))
        return num_right / num_draws


class GroupedXAUC(GroupedMetric):
    """XAUC of each group with two rows or more, weighted by its rows.

    In a group with more than `max_pairs_per_group` pairs so many different ones are drawn. The draw depends on
    the seed, the group's id and its rows alone, so that batches, their order and the number of ranks change nothing.
    """

    name = "grouped_xauc"
    target_type = np.float64
    needed = "two rows or more"

    def __init__(
        self,
        max_pairs_per_group: int = 100,
        seed: int = 0,
        *,
        limit_bytes: int = LIMIT_BYTES,
        folder: Path | None = None,
    ) -> None:
        if max_pairs_per_group < 1:
            raise DataError(
                f"grouped_xauc: max_pairs_per_group is {max_pairs_per_group}; it must be at least 1"
            )
        super().__init__(limit_bytes=limit_bytes, folder=folder)
        self.settings = {"max_pairs_per_group": max_pairs_per_group, "seed": seed}
        self._max_pairs, self._seed = max_pairs_per_group, seed

    def _labels(self, target: NDArray[Any]) -> NDArray[Any]:
        labels = target if target.dtype == np.float32 else target.astype(np.float64)
        if np.isnan(labels).any():
            raise DataError(
                f"{self.name}: the label of row {np.flatnonzero(np.isnan(labels))[0]} is not a number"
            )
        return labels

    def _totals_of(self, rows: Rows) -> Totals:
        keys, preds, target = (np.array(rows[name]) for name in ("key", "pred", "target"))
        order = np.lexsort((target, preds, keys))
        keys, preds, target = keys[order], preds[order], target[order]
        starts = segment_starts(keys)
        sizes = np.diff(starts, append=len(keys))
        num_groups = len(starts)
        starts, sizes = starts[sizes > 1], sizes[sizes > 1]
        totals = np.array([0.0, 0.0, len(starts), num_groups])
        # About as many draws at a time as may be held.
        firsts = segment_starts(np.cumsum(self._num_draws(sizes)) // _BLOCK_DRAWS).tolist()
        for first, last in zip(firsts, [*firsts[1:], len(starts)], strict=True) if firsts else ():
            groups = slice(first, last)
            shares = self._shares(keys[starts[groups]], starts[groups], sizes[groups], preds, target)
            totals[:2] += np.sum(shares * sizes[groups]), np.sum(sizes[groups])
        return totals

    def _num_draws(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        num_draws: NDArray[np.int64] = np.minimum(sizes * (sizes - 1) // 2, self._max_pairs)
        return num_draws

    def _shares(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        preds: NDArray[Any],
        target: NDArray[Any],
    ) -> NDArray[np.float64]:
        """The share of each group; its rows stand in the order of their predictions from its start on."""
        num_draws = self._num_draws(sizes)
        ends = np.cumsum(num_draws)
        group = np.repeat(np.arange(len(keys)), num_draws)
        draws = np.arange(len(group)) - (ends - num_draws)[group]
        words = mixed(keys ^ np.uint64(self._seed % 2**64))
        num_all = sizes * (sizes - 1) // 2
        circle_starts = (words % num_all.astype(np.uint64)).astype(np.int64)
        noise = mixed(words[group] + draws.astype(np.uint64))
        numbers = drawn_numbers(draws, num_draws[group], num_all[group], circle_starts[group], noise)
        i, j = (starts[group] + rows for rows in pairs_numbered(numbers))
        is_right = (preds[i] < preds[j]) & (target[i] < target[j])
        return np.add.reduceat(is_right, ends - num_draws, dtype=np.int64) / num_draws


class RowSample:
    """A uniform sample: the rows with the lowest lots; a lot is a hash of the seed, the row's number and the row.

    So every row is as likely to be kept, nothing depends on how rows were cut into batches, and rows of different ranks
    draw different lots without knowing of each other. All rows up to some lot are there: two samples are joined by
    keeping what is below the lots of both, and a saved one goes on in one that may keep more, or fewer.
    """

    def __init__(self, max_rows: int, seed: int) -> None:
        if max_rows < 2:
            raise DataError(f"xauc: at most {max_rows} rows; a pair needs 2")
        self.max_rows, self.seed = max_rows, seed
        self.reset()

    def reset(self) -> None:
        self.num_seen = 0
        self._chunks = [np.empty(0, _SAMPLED)]
        self.num_held = 0  # up to twice as many as are kept
        self._max_lot = _EVERY_LOT

    def add(self, preds: NDArray[np.float64], target: NDArray[np.float64]) -> None:
        numbers = np.arange(self.num_seen, self.num_seen + len(preds), dtype=np.uint64)
        lots = mixed(numbers + np.uint64(self.seed % 2**64))
        for values in (preds, target):
            lots = mixed(lots ^ values.view(np.uint64))
        self.num_seen += len(preds)
        rows = np.empty(len(preds), _SAMPLED)
        rows["preds"], rows["target"], rows["lots"] = preds, target, lots
        self._keep(rows)

    def merge(self, other: Self) -> None:
        rows = other.rows()
        self.num_seen += other.num_seen
        self._lower(other._max_lot)
        self._keep(rows)

    def rows(self) -> NDArray[np.void]:
        if self.num_held > self.max_rows:
            lots = self._joined()["lots"]
            self._lower(np.partition(lots, self.max_rows - 1)[self.max_rows - 1])
        return self._joined()

    @property
    def held_bytes(self) -> int:
        return self.num_held * _SAMPLED.itemsize

    def restore(self, num_seen: int, *columns: NDArray[Any]) -> None:
        """Go on with the sample of so many rows."""
        self.reset()
        self.num_seen = num_seen
        rows = np.empty(len(columns[0]), _SAMPLED)
        for name, column in zip(_COLUMNS, columns, strict=True):
            rows[name] = column
        if self.num_seen > len(rows) > 0:
            self._max_lot = rows["lots"].max()
        self._keep(rows)

    def _joined(self) -> NDArray[np.void]:
        if len(self._chunks) > 1:
            self._chunks = [np.concatenate(self._chunks)]
        return self._chunks[0]

    def _keep(self, rows: NDArray[np.void]) -> None:
        if self._max_lot != _EVERY_LOT:
            rows = rows[rows["lots"] <= self._max_lot]
        self._chunks.append(rows)
        self.num_held += len(rows)
        if self.num_held > 2 * self.max_rows:
            self.rows()

    def _lower(self, max_lot: np.uint64) -> None:
        """Drop the rows with higher lots, now and later."""
        if max_lot < self._max_lot:
            self._max_lot = max_lot
            rows = self._joined()
            # Two rows with one lot are too rare to matter, but not to be counted.
            self._chunks = [rows[np.flatnonzero(rows["lots"] <= max_lot)[: self.max_rows]]]
            self.num_held = len(self._chunks[0])


def num_pairs(num_rows: int) -> int:
    return num_rows * (num_rows - 1) // 2


def num_right_pairs(preds: NDArray[Any], target: NDArray[Any]) -> int:
    """Pairs that predictions and labels order alike, in O(n log n); a tie on either side is not alike.

    In the order of the labels, equal labels from the highest prediction down, these are exactly the pairs whose
    later prediction is the higher one.
    """
    if len(preds) < 2:
        return 0
    distinct, ranks = np.unique(preds, return_inverse=True)
    ranks = ranks.astype(np.int32 if len(preds) < 2**31 else np.int64)
    return _num_ascending_pairs(ranks[np.lexsort((-ranks, target))], len(distinct))


def _num_ascending_pairs(ranks: Indices, num_ranks: int) -> int:
    """Pairs i < j with ranks[i] < ranks[j].

    Two different ranks part at one bit: above it they are equal, there the smaller has 0 and the larger 1. So, from the
    highest bit down, the ranks are kept grouped by the bits above, in their order, and each rank with a 1 counts the
    ranks with a 0 before it in its group.
    """
    total = 0
    for bit in reversed(range((num_ranks - 1).bit_length())):
        is_low = (ranks >> bit) & 1 == 0
        group = ranks >> (bit + 1)
        starts = np.concatenate(([0], np.flatnonzero(np.diff(group)) + 1)).astype(ranks.dtype)
        sizes = np.diff(starts, append=ranks.dtype.type(len(ranks)))
        low_until = np.cumsum(is_low, dtype=ranks.dtype)
        low_before_group = low_until[starts] - is_low[starts]
        low_in_group = np.add.reduceat(is_low, starts, dtype=ranks.dtype)
        low_so_far = low_until - np.repeat(low_before_group, sizes)
        total += int(low_so_far[~is_low].sum(dtype=np.int64))
        slots = np.arange(len(ranks), dtype=ranks.dtype)
        slots -= low_so_far
        slots += np.repeat(low_in_group, sizes)
        low_so_far += np.repeat(starts, sizes)
        np.copyto(slots, low_so_far - 1, where=is_low)
        grouped = np.empty_like(ranks)
        grouped[slots] = ranks
        ranks = grouped
    return total


def pairs_numbered(numbers: Indices) -> tuple[Indices, Indices]:
    """The pairs i < j with these numbers, exact up to 2**61: a guess by a root, corrected by integers."""
    later = np.sqrt(2.0 * numbers).astype(np.int64)
    for _ in range(2):
        later += (later + 1) * later // 2 <= numbers
        later -= later * (later - 1) // 2 > numbers
    return numbers - later * (later - 1) // 2, later


def drawn_numbers(draws: Indices, num_draws: Any, num_all: Any, starts: Indices, noise: Words) -> Indices:
    """The numbers that the draws 0 <= d < num_draws take of `num_all`: all different, each number as likely.

    The circle of all numbers, from a random start, is cut into `num_draws` arcs, and each draw takes one number of its
    arc. `num_draws`, `num_all` and `starts` are one for all draws, or one for each.
    """
    share, rest = num_all // num_draws, num_all % num_draws
    begins = draws * share + draws * rest // num_draws
    lengths = (draws + 1) * share + (draws + 1) * rest // num_draws - begins
    inside = (noise % lengths.astype(np.uint64)).astype(np.int64)
    numbers: Indices = (starts + begins + inside) % num_all
    return numbers
