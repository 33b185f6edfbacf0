"""Log loss measured in units of what the base rate alone would cost."""

from typing import TYPE_CHECKING, Self

import numpy as np

from penstock.metrics.inputs import binary_rows
from penstock.metrics.metric import Settings, Values
from penstock.metrics.sums import SumsMetric

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import NormalizedEntropy as NormalizedEntropySection


class NormalizedEntropy(SumsMetric):
    """Cross entropy of the predictions over the entropy of the share of positives.

    Below 1 the predictions know more than the base rate. With rows of one class there is nothing to know, and
    it is undefined. Probabilities are kept `eta` away from 0 and 1.
    """

    name = "normalized_entropy"

    def __init__(self, eta: float = 1e-12) -> None:
        super().__init__(
            {
                "cross_entropy": np.zeros((), dtype=np.float64),
                "num_rows": np.zeros((), dtype=np.int64),
                "num_positives": np.zeros((), dtype=np.int64),
            }
        )
        self._eta = eta

    @classmethod
    def from_section(cls, section: "NormalizedEntropySection") -> Self:
        """With the eta of the run file."""
        return cls(section.eta)

    @property
    def settings(self) -> Settings:
        """What rows are counted by."""
        return {"eta": self._eta}

    def update(self, preds: Values, target: Values) -> None:
        """Add the rows of one batch."""
        rows = binary_rows(preds, target, self.name)
        probabilities = rows.probabilities.astype(np.float64)
        likelihoods = np.where(rows.is_positive, probabilities, 1.0 - probabilities)
        self._sums["cross_entropy"] -= np.log(np.clip(likelihoods, self._eta, 1.0 - self._eta)).sum()
        self._sums["num_rows"] += len(probabilities)
        self._sums["num_positives"] += np.count_nonzero(rows.is_positive)
        self._sums["num_left_out"] += rows.num_left_out

    def _value(self) -> float:
        num_rows = float(self._sums["num_rows"])
        base_rate = float(self._sums["num_positives"]) / num_rows
        entropy = -base_rate * np.log(base_rate) - (1.0 - base_rate) * np.log1p(-base_rate)
        return float(self._sums["cross_entropy"] / num_rows / entropy)

    @property
    def undefined_because(self) -> str | None:
        """Why there is no value; None when there is one."""
        if not self._sums["num_rows"]:
            return "no rows"
        if not self._sums["num_positives"]:
            return "no positive rows"
        return "no negative rows" if self._sums["num_positives"] == self._sums["num_rows"] else None
