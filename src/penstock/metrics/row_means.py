"""Means over rows: of probabilities, of distances between numbers, and of ranks of candidates."""

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.metrics.inputs import BinaryRows, as_array, binary_rows, candidate_rows, class_rows, number_rows
from penstock.metrics.metric import MetricState, Values, missing_class
from penstock.metrics.sums import RowMean, RowValues, SumsMetric


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
        self.settings = {"threshold": threshold, "top_k": top_k}

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        predictions = as_array(preds)
        if predictions.ndim == 2 and predictions.shape[1] > 1:
            probabilities, labels, num_left_out = class_rows(predictions, target, self.name)
            own = np.take_along_axis(probabilities, labels[:, None], axis=1)
            is_before = np.arange(probabilities.shape[1]) < labels[:, None]
            num_ahead = np.count_nonzero((probabilities > own) | ((probabilities == own) & is_before), axis=1)
            return RowValues(num_ahead < self._top_k, num_left_out)
        rows = binary_rows(predictions, target, self.name)
        # Compared in the precision of the predictions, so that a float32 0.7 reaches the threshold 0.7.
        reached = rows.probabilities >= rows.probabilities.dtype.type(self._threshold)
        return RowValues(reached == rows.is_positive, rows.num_left_out)


class LogLoss(RowMean):
    """Mean of -log(probability given to what happened).

    Probabilities are first moved away from 0 and 1 by the precision of their type (1.2e-7 for float32), so
    that one wrong row of full confidence costs 16, not infinity.
    """

    name = "log_loss"

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        rows = binary_rows(preds, target, self.name)
        smallest = float(np.finfo(rows.probabilities.dtype).eps)
        probabilities = np.clip(rows.probabilities.astype(np.float64), smallest, 1.0 - smallest)
        likelihoods = np.where(rows.is_positive, probabilities, 1.0 - probabilities)
        return RowValues(-np.log(likelihoods), rows.num_left_out)


class NormalizedEntropy(SumsMetric):
    """Cross entropy of the predictions over the entropy of the share of positives.

    Below 1 the predictions know more than the base rate. With rows of one class there is nothing to know, and
    it is undefined. Probabilities are kept `eta` away from 0 and 1.
    """

    name = "normalized_entropy"

    def __init__(self, eta: float = 1e-12) -> None:
        super().__init__({"cross_entropy": np.float64, "num_rows": np.int64, "num_positives": np.int64})
        self._eta = eta
        self.settings = {"eta": eta}

    def update(self, preds: Values, target: Values) -> None:
        rows = binary_rows(preds, target, self.name)
        probabilities = rows.probabilities.astype(np.float64)
        likelihoods = np.where(rows.is_positive, probabilities, 1.0 - probabilities)
        self._sums["cross_entropy"] -= np.log(np.clip(likelihoods, self._eta, 1.0 - self._eta)).sum()
        _count(self._sums, rows)

    def _value(self) -> float:
        num_rows = float(self._sums["num_rows"])
        base_rate = float(self._sums["num_positives"]) / num_rows
        entropy = -base_rate * np.log(base_rate) - (1.0 - base_rate) * np.log1p(-base_rate)
        return float(self._sums["cross_entropy"] / num_rows / entropy)

    @property
    def undefined_because(self) -> str | None:
        num_positives = self._sums["num_positives"]
        return missing_class(self._sums["num_rows"] - num_positives, num_positives)


class Calibration(SumsMetric):
    """Sum of the predicted probabilities over the number of positive rows: above 1 promises too much."""

    name = "calibration"

    def __init__(self) -> None:
        super().__init__({"predicted": np.float64, "num_rows": np.int64, "num_positives": np.int64})

    def update(self, preds: Values, target: Values) -> None:
        rows = binary_rows(preds, target, self.name)
        self._sums["predicted"] += np.sum(rows.probabilities, dtype=np.float64)
        _count(self._sums, rows)

    def _value(self) -> float:
        return float(self._sums["predicted"] / self._sums["num_positives"])

    @property
    def undefined_because(self) -> str | None:
        return missing_class(1, self._sums["num_positives"]) if self._sums["num_rows"] else "no rows"


def _count(sums: MetricState, rows: BinaryRows) -> None:
    sums["num_rows"] += len(rows.probabilities)
    sums["num_positives"] += np.count_nonzero(rows.is_positive)
    sums["num_left_out"] += rows.num_left_out


class MeanAbsoluteError(RowMean):
    name = "mean_absolute_error"

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        rows = number_rows(preds, target, self.name)
        return RowValues(np.abs(rows.predictions - rows.labels), rows.num_left_out)


class MeanSquaredError(RowMean):
    name = "mean_squared_error"

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        rows = number_rows(preds, target, self.name)
        return RowValues(np.square(rows.predictions - rows.labels), rows.num_left_out)


class RootMeanSquaredError(MeanSquaredError):
    name = "root_mean_squared_error"

    def _value(self) -> float:
        return math.sqrt(super()._value())


class TopCandidates(RowMean):
    """How well the right candidates of a row are found among the first `top_k`: a mean over rows.

    Candidates are ordered by similarity, the wrong ones first among equals: a model that finds everything equally
    similar finds nothing. Rows without a right candidate say nothing and are not counted.
    """

    def __init__(self, top_k: int = 5) -> None:
        if top_k < 1:
            raise DataError(f"{self.name}: top_k is {top_k}; it looks at 1 candidate or more")
        super().__init__()
        self._top_k = top_k
        self.settings = {"top_k": top_k}

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        similarities, is_relevant, num_left_out = candidate_rows(preds, target, self.name)
        num_relevant = np.count_nonzero(is_relevant, axis=1)
        order = np.lexsort((is_relevant, -similarities), axis=-1)  # stable, the last key first
        top = np.take_along_axis(is_relevant, order, axis=1)[:, : self._top_k]
        return RowValues(self._found(top, num_relevant)[num_relevant > 0], num_left_out)

    @abstractmethod
    def _found(self, top: NDArray[np.bool_], num_relevant: NDArray[np.intp]) -> NDArray[Any]:
        """A number for each row: which of its first candidates are right, and how many right ones there are."""


class RecallAtK(TopCandidates):
    """Share of a row's right candidates that are among the first k."""

    name = "recall_at_k"

    def _found(self, top: NDArray[np.bool_], num_relevant: NDArray[np.intp]) -> NDArray[Any]:
        num_found: NDArray[np.intp] = np.count_nonzero(top, axis=1)
        return np.divide(num_found, np.maximum(num_relevant, 1))


class HitRateAtK(TopCandidates):
    """Share of rows with any right candidate among the first k."""

    name = "hit_rate_at_k"

    def _found(self, top: NDArray[np.bool_], num_relevant: NDArray[np.intp]) -> NDArray[Any]:
        is_hit: NDArray[np.bool_] = np.logical_or.reduce(top, axis=1)
        return is_hit


class NDCGAtK(TopCandidates):
    """Gain of the first k candidates, discounted by log2(rank + 1), over that of the best order."""

    name = "ndcg_at_k"

    def _found(self, top: NDArray[np.bool_], num_relevant: NDArray[np.intp]) -> NDArray[Any]:
        discounts = 1.0 / np.log2(np.arange(2, top.shape[1] + 2))
        best_by_number = np.concatenate([[0.0], np.cumsum(discounts)])
        best = best_by_number[np.minimum(num_relevant, top.shape[1])]
        return top @ discounts / np.where(best > 0, best, 1.0)
