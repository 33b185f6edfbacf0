"""Areas under the ROC curve from histograms: of all rows, of rows that fade, and of each class against the rest."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.inputs import binary_rows, class_rows
from penstock.metrics.metric import MemoryNeeds, MetricState, Values, missing_class
from penstock.metrics.sums import SUMS_COPIES, SumsMetric
from penstock.runtime.world import Collectives

NUM_BINS = 100_000
"""On a million rows within 1e-4 of the exact area, in 1.6 MB."""
MAX_CELLS = 4_000_000
"""Bins of all classes together when no thresholds are asked for: 64 MB however many classes there are."""
DECAY_THRESHOLDS = 200

Counts = NDArray[Any]
"""Negative and positive rows (axis 0) of each bin (axis 1); whole numbers, or fractions after a decay."""


_EDGES: dict[tuple[int, Any], NDArray[Any]] = {}
"""Evenly spaced thresholds from 0 to 1, without the first; by their number and the type of predictions."""


def check_thresholds(number: int, owner: str) -> None:
    if type(number) is not int or number < 2:
        raise DataError(f"{owner}: {number} thresholds; the area needs a whole number of at least 2")


def count_rows(counts: Counts, probabilities: NDArray[np.floating[Any]], histograms: NDArray[Any]) -> None:
    """Count each prediction, in its histogram, at the highest threshold that it reaches; in place.

    The last axis of the counts is that of the thresholds; `histograms` are numbers along all others. Compared in the
    precision of the predictions, so that a float32 0.7 reaches the threshold 0.7.
    """
    number, dtype = counts.shape[-1], probabilities.dtype
    if (number, dtype) not in _EDGES:
        _EDGES[number, dtype] = np.linspace(0.0, 1.0, number)[1:].astype(dtype)
    # A guess by multiplication, never too high, and in float32 up to 2 million thresholds at most one too low.
    almost_one = 1 - 2 * np.finfo(dtype).eps
    slots = (probabilities * dtype.type((number - 1) * almost_one)).astype(np.intp)
    slots += _EDGES[number, dtype].take(slots) <= probabilities
    slots += histograms * number
    flat = counts.reshape(-1)
    # `bincount` passes once over all slots, which pays when a batch has at least as many rows; a small batch on a
    # fine histogram touches only its own slots (8,192 rows on 200,000 slots: 0.02 ms instead of 0.15).
    if slots.size >= len(flat):
        flat += np.bincount(slots.reshape(-1), minlength=len(flat)).astype(flat.dtype, copy=False)
    else:
        np.add.at(flat, slots.reshape(-1), 1)


def area(counts: Counts) -> float:
    """The trapezoids between the points of the thresholds, from (0, 0) to (1, 1): rows of one bin are ties."""
    negatives, positives = counts.astype(np.float64)
    negatives_below = np.cumsum(negatives) - negatives
    won = np.sum(positives * (negatives_below + negatives / 2))
    return float(won / (positives.sum() * negatives.sum()))


class AUC(SumsMetric):
    """The chance that a positive row is predicted above a negative one, ties counting half.

    Rows are counted between `thresholds` evenly spaced values from 0 to 1 (by default 100,000), a row belonging to the
    highest threshold that its prediction reaches. Rows between the same two thresholds count as ties.
    """

    name = "auc"
    newest = "counts"
    """The sum to which new rows are added."""

    def __init__(self, thresholds: int | None = None) -> None:
        if thresholds is not None:
            check_thresholds(thresholds, self.name)
        super().__init__({"counts": np.zeros((2, thresholds or NUM_BINS), dtype=np.int64)})

    def update(self, preds: Values, target: Values) -> None:
        rows = binary_rows(preds, target, self.name)
        count_rows(self._sums[self.newest], rows.probabilities, rows.is_positive)
        self._sums["num_left_out"] += rows.num_left_out

    @property
    def counts(self) -> Counts:
        """What the value is computed from."""
        return self._sums["counts"]

    def _value(self) -> float:
        return area(self.counts)

    @property
    def undefined_because(self) -> str | None:
        return missing_class(*self.counts.sum(axis=1))


class DecayAUC(AUC):
    """The AUC of training, in which old rows fade: by default at 200 thresholds, with a buffer of the newest rows.

    `decay(rate)` mixes the buffer into the counts. Counts and buffer are linear in the rows, so that the sums
    over ranks that decay at the same steps are the counts of one process that saw all their rows.
    """

    newest = "buffer"

    def __init__(self, thresholds: int | None = None) -> None:
        super().__init__(DECAY_THRESHOLDS if thresholds is None else thresholds)
        shape = self._sums["counts"].shape
        self._sums["counts"], self._sums["buffer"] = np.zeros(shape), np.zeros(shape)
        self._sums["num_decayed"] = np.zeros((), dtype=np.int64)  # parts with counts: 1, or more when merged

    def decay(self, rate: float) -> None:
        """The buffer becomes the counts the first time; later counts = rate * counts + (1 - rate) * buffer."""
        if not 0.0 <= rate <= 1.0:
            raise DataError(f"{self.name}: decays by a rate from 0 to 1, not {rate}")
        counts, buffer = self._sums["counts"], self._sums["buffer"]
        self._sums["counts"] = rate * counts + (1.0 - rate) * buffer if self.has_decayed else buffer.copy()
        self._sums["buffer"] = np.zeros_like(buffer)
        self._sums["num_decayed"][...] = 1

    def forget_rows(self) -> None:
        """Zero all sums, but remember that the first decay is over."""
        num_decayed = self._sums["num_decayed"]
        self.reset()
        self._sums["num_decayed"] = num_decayed

    @property
    def has_decayed(self) -> bool:
        return bool(self._sums["num_decayed"] > 0)

    @property
    def counts(self) -> Counts:
        return self._sums["counts" if self.has_decayed else "buffer"]


class MulticlassAUC(SumsMetric):
    """Mean over classes of the area of one class against the rest; classes without both are left out.

    macro: every class counts the same. weighted: by its rows. The number of classes is that of the first batch.
    """

    name = "multiclass_auc"

    def __init__(self, thresholds: int | None = None, average: str = "macro") -> None:
        if average not in ("macro", "weighted"):
            raise DataError(f"{self.name}: average is '{average}'; it is macro or weighted")
        if thresholds is not None:
            check_thresholds(thresholds, self.name)
        self._num_thresholds, self._average = thresholds, average
        self.settings = {"thresholds": thresholds, "average": average}
        super().__init__({"counts": np.zeros((0, 2, 0), dtype=np.int64)})

    def update(self, preds: Values, target: Values) -> None:
        probabilities, labels, num_left_out = class_rows(preds, target, self.name)
        self._prepare(probabilities.shape[1])
        classes = np.arange(probabilities.shape[1])
        count_rows(self._sums["counts"], probabilities, 2 * classes + (labels[:, None] == classes))
        self._sums["num_left_out"] += num_left_out

    def merge(self, other: Self) -> None:
        """Add the counts of another; one that has seen nothing yet learns the number of classes from the other."""
        if num_classes := self._num_classes or other._num_classes:
            self._prepare(num_classes)
            other._prepare(num_classes)
        super().merge(other)

    def reduced(self, collectives: Collectives) -> Self:
        """As for all sums; a rank without rows first learns the number of classes."""
        num_classes = max(int(found[0]) for found in collectives.gather(np.array([self._num_classes])))
        if num_classes:
            self._prepare(num_classes)
        return super().reduced(collectives)

    def load_state_dict(self, state: MetricState) -> None:
        shape = np.shape(state["counts"]) if "counts" in state else (0,)
        if len(shape) != 3:
            raise CheckpointError(f"{self.name}: the saved state has {sorted(state)}, no counts of classes")
        self._sums["counts"] = np.zeros((0, 2, 0), dtype=np.int64)
        if shape[0]:
            self._prepare(shape[0])
        super().load_state_dict(state)

    def _value(self) -> float:
        counts = self._sums["counts"]
        areas = np.array([math.nan if missing_class(*own.sum(axis=1)) else area(own) for own in counts])
        defined = ~np.isnan(areas)
        weights = self._class_rows()[defined] if self._average == "weighted" else None
        return float(np.average(areas[defined], weights=weights))

    @property
    def undefined_because(self) -> str | None:
        num_seen = np.count_nonzero(self._class_rows())
        return None if num_seen > 1 else ("rows of one class only" if num_seen else "no rows")

    @property
    def _num_classes(self) -> int:
        return len(self._sums["counts"])

    def _class_rows(self) -> NDArray[np.int64]:
        rows: NDArray[np.int64] = self._sums["counts"][:, 1].sum(axis=1)
        return rows

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        num_bytes = SUMS_COPIES * 2 * num_classes * self._number(num_classes) * np.dtype(np.int64).itemsize
        return MemoryNeeds(num_bytes, num_bytes)

    def _number(self, num_classes: int) -> int:
        affordable = max(2, min(NUM_BINS, MAX_CELLS // num_classes))
        return affordable if self._num_thresholds is None else self._num_thresholds

    def _prepare(self, num_classes: int) -> None:
        """Allocate counts of so many classes; another number than before is an error."""
        if not self._num_classes:
            self._sums["counts"] = np.zeros((num_classes, 2, self._number(num_classes)), dtype=np.int64)
        elif num_classes != self._num_classes:
            raise DataError(f"{self.name}: {num_classes} classes after {self._num_classes}")
