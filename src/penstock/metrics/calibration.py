"""Whether as many rows are positive as were predicted."""

from typing import Any, Self

import numpy as np

from penstock.metrics.inputs import binary_rows
from penstock.metrics.metric import Values
from penstock.metrics.sums import SumsMetric


class Calibration(SumsMetric):
    """Sum of the predicted probabilities over the number of positive rows: above 1 promises too much."""

    name = "calibration"

    def __init__(self) -> None:
        super().__init__(
            {
                "predicted": np.zeros((), dtype=np.float64),
                "num_positives": np.zeros((), dtype=np.int64),
                "num_rows": np.zeros((), dtype=np.int64),
            }
        )

    @classmethod
    def from_section(cls, section: Any) -> Self:
        """There is nothing to set."""
        return cls()

    def update(self, preds: Values, target: Values) -> None:
        """Add the rows of one batch."""
        rows = binary_rows(preds, target, self.name)
        self._sums["predicted"] += np.sum(rows.probabilities, dtype=np.float64)
        self._sums["num_positives"] += np.count_nonzero(rows.is_positive)
        self._sums["num_rows"] += len(rows.probabilities)
        self._sums["num_left_out"] += rows.num_left_out

    def _value(self) -> float:
        return float(self._sums["predicted"] / self._sums["num_positives"])

    @property
    def undefined_because(self) -> str | None:
        """Why there is no value; None when there is one."""
        if not self._sums["num_rows"]:
            return "no rows"
        return None if self._sums["num_positives"] else "no positive rows"
