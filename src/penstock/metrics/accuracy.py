"""Share of rows that are predicted right."""

from typing import TYPE_CHECKING, Self

import numpy as np

from penstock.config.errors import DataError
from penstock.metrics.inputs import as_array, binary_rows, class_rows
from penstock.metrics.metric import Settings, Values
from penstock.metrics.sums import RowMean, RowValues

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import Accuracy as AccuracySection


class Accuracy(RowMean):
    """Share of rows that are predicted right.

    One probability for each row: right if it reaches the threshold for a positive row, and only then. One for
    each class: right if the class is among the `top_k` likeliest, equal ones ordered by class.
    """

    name = "accuracy"

    def __init__(self, threshold: float = 0.5, top_k: int = 1) -> None:
        super().__init__()
        if not 0.0 <= threshold <= 1.0 or top_k < 1:
            raise DataError(f"accuracy: threshold {threshold}, top_k {top_k}: from 0 to 1, and at least 1")
        self._threshold, self._top_k = threshold, top_k

    @classmethod
    def from_section(cls, section: "AccuracySection") -> Self:
        """The threshold and the number of classes that count as right."""
        return cls(section.threshold, section.top_k)

    @property
    def settings(self) -> Settings:
        """What rows are counted by."""
        return {"threshold": self._threshold, "top_k": self._top_k}

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        predictions = as_array(preds)
        if predictions.ndim == 2 and predictions.shape[1] > 1:
            return self._of_classes(predictions, target)
        rows = binary_rows(predictions, target, self.name)
        # Compared in the precision of the predictions, so that a float32 0.7 reaches the threshold 0.7.
        reached = rows.probabilities >= rows.probabilities.dtype.type(self._threshold)
        return RowValues(reached == rows.is_positive, rows.num_left_out)

    def _of_classes(self, predictions: Values, target: Values) -> RowValues:
        rows = class_rows(predictions, target, self.name)
        own = np.take_along_axis(rows.probabilities, rows.labels[:, None], axis=1)
        is_before = np.arange(rows.probabilities.shape[1]) < rows.labels[:, None]
        num_ahead = np.count_nonzero(
            (rows.probabilities > own) | ((rows.probabilities == own) & is_before), axis=1
        )
        return RowValues(num_ahead < self._top_k, rows.num_left_out)
