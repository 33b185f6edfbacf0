"""Area under the ROC curve of each class against all others, averaged."""

import math
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.auc import NUM_BINS
from penstock.metrics.histogram import Thresholds, add_counts, area, one_class_only
from penstock.metrics.inputs import class_rows
from penstock.metrics.memory import MemoryNeeds
from penstock.metrics.metric import MetricState, Settings, Values, refuse_other_settings
from penstock.metrics.sums import SUMS_COPIES, SumsMetric
from penstock.runtime.collectives import Collectives

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import MulticlassAUC as MulticlassAucSection

MAX_CELLS = 4_000_000
"""Bins of all classes together when no thresholds are asked for: 64 MB however many classes there are."""


class MulticlassAUC(SumsMetric):
    """Mean over classes of the area of one class against the rest; classes without both are left out.

    macro: every class counts the same. weighted: by its rows. The number of classes is that of the first batch.
    """

    name = "multiclass_auc"

    def __init__(self, thresholds: int | None = None, average: str = "macro") -> None:
        if average not in ("macro", "weighted"):
            raise DataError(f"{self.name}: average is '{average}'; it is macro or weighted")
        self._num_thresholds, self._average = thresholds, average
        self._thresholds: Thresholds | None = None
        super().__init__({"counts": np.zeros((0, 2, 0), dtype=np.int64)})

    @classmethod
    def from_section(cls, section: "MulticlassAucSection") -> Self:
        """With the thresholds and the average of the run file."""
        return cls(section.thresholds, section.average)

    @property
    def settings(self) -> Settings:
        """What rows are counted by."""
        return {"thresholds": self._num_thresholds, "average": self._average}

    def update(self, preds: Values, target: Values) -> None:
        """Count the rows of one batch, each once for every class."""
        rows = class_rows(preds, target, self.name)
        thresholds = self._prepare(rows.probabilities.shape[1])
        classes = np.arange(rows.probabilities.shape[1])
        is_positive = rows.labels[:, None] == classes
        slots = (2 * classes + is_positive) * thresholds.number + thresholds.bins(rows.probabilities)
        add_counts(self._sums["counts"], slots.reshape(-1))
        self._sums["num_left_out"] += rows.num_left_out

    def merge(self, other: Self) -> None:
        """Add the counts of another; one that has seen nothing yet learns the number of classes from it."""
        refuse_other_settings(self.name, self.settings, other.settings)
        if other._num_classes:
            self._prepare(other._num_classes)
            super().merge(other)
        else:
            self._sums["num_left_out"] = self._sums["num_left_out"] + other._sums["num_left_out"]

    def reduced(self, collectives: Collectives) -> Self:
        """One that has seen the rows of all ranks; a rank without rows first learns the number of classes."""
        num_classes = max(int(found[0]) for found in collectives.gather(np.array([self._num_classes])))
        if num_classes:
            self._prepare(num_classes)
        return super().reduced(collectives)

    def load_state_dict(self, state: MetricState) -> None:
        """Go on from saved counts, with their number of classes."""
        shape = np.shape(state["counts"]) if "counts" in state else (0,)
        if len(shape) != 3:
            raise CheckpointError(f"{self.name}: the saved state has {sorted(state)}, no counts of classes")
        self._sums["counts"], self._thresholds = np.zeros((0, 2, 0), dtype=np.int64), None
        if shape[0]:
            self._prepare(shape[0])
        super().load_state_dict(state)

    def _value(self) -> float:
        areas = np.array([math.nan if one_class_only(own) else area(own) for own in self._sums["counts"]])
        defined = ~np.isnan(areas)
        weights = self._class_rows()[defined] if self._average == "weighted" else None
        return float(np.average(areas[defined], weights=weights))

    @property
    def undefined_because(self) -> str | None:
        """Why there is no area; None when there is one."""
        num_seen = np.count_nonzero(self._class_rows())
        return None if num_seen > 1 else ("rows of one class only" if num_seen else "no rows")

    @property
    def _num_classes(self) -> int:
        return len(self._sums["counts"])

    def _class_rows(self) -> NDArray[np.int64]:
        """How many rows each class has."""
        rows: NDArray[np.int64] = self._sums["counts"][:, 1].sum(axis=1)
        return rows

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """Counts of two kinds at every threshold of every class."""
        num_bytes = SUMS_COPIES * 2 * num_classes * self._number(num_classes) * np.dtype(np.int64).itemsize
        return MemoryNeeds(num_bytes, num_bytes)

    def _number(self, num_classes: int) -> int:
        """Of thresholds for each class."""
        affordable = max(2, min(NUM_BINS, MAX_CELLS // num_classes))
        return affordable if self._num_thresholds is None else self._num_thresholds

    def _prepare(self, num_classes: int) -> Thresholds:
        """Make room for so many classes; another number than before is an error."""
        if self._thresholds is None:
            number = self._number(num_classes)
            self._thresholds = Thresholds(number, self.name)
            self._sums["counts"] = np.zeros((num_classes, 2, number), dtype=np.int64)
        elif num_classes != self._num_classes:
            raise DataError(f"{self.name}: {num_classes} classes after {self._num_classes}")
        return self._thresholds
