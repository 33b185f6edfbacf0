"""Mean negative log likelihood of binary labels."""

import math
from typing import TYPE_CHECKING, Self

import numpy as np

from penstock.metrics.inputs import binary_rows
from penstock.metrics.metric import MetricState, Values, restored

if TYPE_CHECKING:
    from penstock.metrics.sections import LogLoss as LogLossSection


class LogLoss:
    """Mean of -log(probability given to what happened).

    Probabilities are first moved away from 0 and 1 by the precision of their type (1.2e-7 for float32), so
    that one wrong row of full confidence costs 16, not infinity.
    """

    def __init__(self) -> None:
        self._total = np.zeros((), dtype=np.float64)
        self._num_rows = np.zeros((), dtype=np.int64)
        self._num_left_out = np.zeros((), dtype=np.int64)

    @classmethod
    def from_section(cls, section: "LogLossSection") -> Self:
        """There is nothing to set."""
        return cls()

    def update(self, preds: Values, target: Values) -> None:
        """Add the rows of one batch."""
        rows = binary_rows(preds, target, "log_loss")
        smallest = float(np.finfo(rows.probabilities.dtype).eps)
        probabilities = np.clip(rows.probabilities.astype(np.float64), smallest, 1.0 - smallest)
        self._total -= np.log(np.where(rows.is_positive, probabilities, 1.0 - probabilities)).sum()
        self._num_rows += len(probabilities)
        self._num_left_out += rows.num_left_out

    def merge(self, other: Self) -> None:
        """Add the rows of another."""
        self._total += other._total
        self._num_rows += other._num_rows
        self._num_left_out += other._num_left_out

    def compute(self) -> float:
        """The mean; NaN without rows."""
        return float(self._total / self._num_rows) if self._num_rows else math.nan

    def reset(self) -> None:
        """Forget every row."""
        for array in (self._total, self._num_rows, self._num_left_out):
            array[...] = 0

    def state_dict(self) -> MetricState:
        """The sum and the counts."""
        return {
            "total": self._total.copy(),
            "num_rows": self._num_rows.copy(),
            "num_left_out": self._num_left_out.copy(),
        }

    def load_state_dict(self, state: MetricState) -> None:
        """Go on from a saved sum."""
        arrays = restored(state, self.state_dict(), "log_loss")
        self._total, self._num_rows = arrays["total"], arrays["num_rows"]
        self._num_left_out = arrays["num_left_out"]

    @property
    def undefined_because(self) -> str | None:
        """Why there is no value; None when there is one."""
        return None if self._num_rows else "no rows"

    @property
    def num_left_out(self) -> int:
        """Rows whose prediction is NaN."""
        return int(self._num_left_out)
