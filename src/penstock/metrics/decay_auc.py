"""An area under the ROC curve in which old rows fade: the AUC of training."""

from typing import TYPE_CHECKING, Self

import numpy as np

from penstock.config.errors import DataError
from penstock.metrics.histogram import Counts, Thresholds, add_counts, area, one_class_only
from penstock.metrics.inputs import binary_rows
from penstock.metrics.metric import Values
from penstock.metrics.sums import SumsMetric

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import AUC as AucSection

NUM_THRESHOLDS = 200


class DecayAUC(SumsMetric):
    """Counts at evenly spaced thresholds, as in `AUC`, and a buffer of the rows since the last decay.

    `decay(rate)` mixes the buffer into the counts. Counts and buffer are linear in the rows, so that the sums
    over ranks that decay at the same steps are the counts of one process that saw all their rows.
    """

    name = "auc"

    def __init__(self, thresholds: int = NUM_THRESHOLDS) -> None:
        self._thresholds = Thresholds(thresholds, self.name)
        shape = (2, thresholds)
        super().__init__(
            {
                "counts": np.zeros(shape, dtype=np.float64),
                "buffer": np.zeros(shape, dtype=np.float64),
                "num_decayed": np.zeros((), dtype=np.int64),  # parts with counts: 1, or more when merged
            }
        )

    @classmethod
    def from_section(cls, section: "AucSection") -> Self:
        """As many thresholds as are written, else 200."""
        return cls(NUM_THRESHOLDS if section.thresholds is None else section.thresholds)

    def update(self, preds: Values, target: Values) -> None:
        """Count the rows of one batch in the buffer."""
        rows = binary_rows(preds, target, self.name)
        slots = self._thresholds.bins(rows.probabilities) + self._thresholds.number * rows.is_positive
        add_counts(self._sums["buffer"], slots)
        self._sums["num_left_out"] += rows.num_left_out

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
        """Whether the first decay is over."""
        return bool(self._sums["num_decayed"] > 0)

    def _read(self) -> Counts:
        return self._sums["counts" if self.has_decayed else "buffer"]

    def _value(self) -> float:
        return area(self._read())

    @property
    def undefined_because(self) -> str | None:
        """Why there is no area; None when there is one."""
        return one_class_only(self._read())
