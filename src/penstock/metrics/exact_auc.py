"""Area under the ROC curve without a histogram: every prediction counts as it is, sorted on disk beyond a limit."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.sizes import MIB
from penstock.metrics.inputs import binary_rows
from penstock.metrics.metric import MemoryNeeds, Values, missing_class
from penstock.metrics.spool import Spool
from penstock.metrics.sums import SumsMetric
from penstock.runtime.world import Collectives

Levels = NDArray[np.void]
"""Distinct predictions in ascending order, with the negative and positive rows of each."""

LEVEL = np.dtype([("value", np.float64), ("negatives", np.int64), ("positives", np.int64)])
LIMIT_BYTES = 64 * MIB
"""About 2.8 million distinct predictions."""
MIN_LIMIT_BYTES = 4 * MIB
"""With less, sorted files would be too many."""
SORTING_COPIES = 4
"""What sorting takes for a moment, what is sorted included: measured 2.9, and what allocators keep."""


class ExactAUC(SumsMetric):
    """The chance that a positive row is predicted above a negative one; only equal predictions are ties.

    Rows are held as distinct predictions and how often each came. Beyond `limit_bytes` they are sorted and written to
    temporary files, and computing merges these block by block, within the same limit. The files go when the metric is
    reset or no longer used, at the latest when the process ends.
    """

    name = "auc"
    columns = ("value", "negatives", "positives")

    def __init__(self, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None) -> None:
        """Temporary files go to `folder`, or where the system keeps them (TMPDIR)."""
        super().__init__({"num_rows": np.zeros(2, dtype=np.int64)})  # negative, positive
        self._limit_bytes = limit_bytes
        self._spool = Spool("predictions", folder)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._spool.clear()
        self._held: list[Levels] = []
        self._held_bytes = 0
        self.num_runs = 0
        """How many sorted files there are."""

    def update(self, preds: Values, target: Values) -> None:
        rows = binary_rows(preds, target, self.name)
        levels = np.zeros(len(rows.probabilities), LEVEL)
        levels["value"] = rows.probabilities
        levels["negatives"], levels["positives"] = ~rows.is_positive, rows.is_positive
        self._add(_joined([levels]))
        self._sums["num_rows"] += (levels["negatives"].sum(), levels["positives"].sum())
        self._sums["num_left_out"] += rows.num_left_out

    def merge(self, other: Self) -> None:
        super().merge(other)
        for levels in other._blocks():
            self._add(levels)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = type(self)(self._limit_bytes, self._spool.folder)
        other.merge(self)
        return other

    def reduced(self, collectives: Collectives) -> Self:
        """One that has seen the rows of all ranks, sent block by block; every rank must call."""
        whole = type(self)(self._limit_bytes, self._spool.folder)
        whole._sums = super().reduced(collectives)._sums
        blocks, nothing = self._blocks(self._limit_bytes // 8), np.zeros(0, LEVEL)
        parts = collectives.gather(next(blocks, nothing))
        while any(map(len, parts)):
            for part in parts:
                whole._add(part)
            parts = collectives.gather(next(blocks, nothing))
        return whole

    def _value(self) -> float:
        won, negatives_below = 0.0, 0
        for levels in self._blocks():
            negatives = levels["negatives"].astype(np.float64)
            below = negatives_below + np.cumsum(negatives) - negatives
            won += float(np.sum(levels["positives"] * (below + negatives / 2)))
            negatives_below += int(levels["negatives"].sum())
        num_negatives, num_positives = self._sums["num_rows"].tolist()
        return won / (float(num_negatives) * float(num_positives))

    @property
    def undefined_because(self) -> str | None:
        return missing_class(*self._sums["num_rows"])

    def _kept(self) -> Levels:
        return np.concatenate([np.zeros(0, LEVEL), *self._blocks()])

    def _keep_again(self, *columns: NDArray[Any]) -> None:
        levels = np.zeros(len(columns[0]), LEVEL)
        for name, column in zip(self.columns, columns, strict=True):
            levels[name] = column
        self._add(levels)

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        all_bytes = num_rows * LEVEL.itemsize
        return MemoryNeeds(
            SORTING_COPIES * min(all_bytes, MIN_LIMIT_BYTES), SORTING_COPIES * min(all_bytes, LIMIT_BYTES)
        )

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        self._limit_bytes = max(LEVEL.itemsize, limit_bytes // SORTING_COPIES)

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    @property
    def computing_bytes(self) -> int:
        return SORTING_COPIES * self._held_bytes

    def _add(self, levels: Levels) -> None:
        """Keep distinct, sorted levels; what is too much goes to disk as one sorted run."""
        self._held.append(levels)
        self._held_bytes += levels.nbytes
        if self._held_bytes <= self._limit_bytes:
            return
        joined = self._join_held()
        if joined.nbytes > self._limit_bytes // 2:
            self._spool.append(f"run-{self.num_runs:06d}", joined)
            self.num_runs += 1
            self._held, self._held_bytes = [], 0

    def _join_held(self) -> Levels:
        parts, self._held = self._held, []
        joined = _joined(parts)
        self._held, self._held_bytes = [joined], joined.nbytes
        return joined

    def _blocks(self, max_bytes: int | None = None) -> Iterator[Levels]:
        """All levels in ascending order, each once, a quarter of what may be held (or `max_bytes`) at a time."""
        held = self._join_held()
        runs = [partial(self._spool.read, f"run-{number:06d}", LEVEL) for number in range(self.num_runs)]
        max_levels = (max_bytes or self._limit_bytes // 4) // LEVEL.itemsize
        return _merged([*runs, lambda start, count: held[start : start + count]], max_levels)


def _merged(runs: Sequence[Callable[[int, int], Levels]], max_levels: int) -> Iterator[Levels]:
    """Sorted runs as one, by blocks: up to the lowest end of the next blocks of all runs, nothing is missing.

    A run gives so many levels from an offset on.
    """
    offsets = [0] * len(runs)
    count = max(1, max_levels // len(runs))
    while True:
        blocks = [run(offset, count) for run, offset in zip(runs, offsets, strict=True)]
        ends = [block["value"][-1] for block in blocks if len(block)]
        if not ends:
            return
        taken = [int(np.searchsorted(block["value"], min(ends), side="right")) for block in blocks]
        offsets = [offset + number for offset, number in zip(offsets, taken, strict=True)]
        yield _joined([block[:number] for block, number in zip(blocks, taken, strict=True)])


def _joined(parts: list[Levels]) -> Levels:
    """The levels of all parts, sorted, each prediction once; the list is emptied, so that its parts can go."""
    levels = np.concatenate([np.zeros(0, LEVEL), *parts])
    parts.clear()
    levels = levels[np.argsort(levels["value"], kind="stable")]
    is_first = np.append(True, levels["value"][1:] != levels["value"][:-1])[: len(levels)]
    if is_first.all():
        return levels
    starts = np.flatnonzero(is_first)
    joined = np.empty(len(starts), LEVEL)
    joined["value"] = levels["value"][starts]
    for column in ("negatives", "positives"):
        joined[column] = np.add.reduceat(levels[column], starts)
    return joined
