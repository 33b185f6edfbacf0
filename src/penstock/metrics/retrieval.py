"""How well the right candidates are found among all candidates of a row.

Candidates are ordered by similarity, the wrong ones first among equals: a model that finds everything equally
similar finds nothing. Rows without a right candidate say nothing and are not counted.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.metrics.inputs import candidate_rows
from penstock.metrics.metric import Values
from penstock.metrics.sums import RowMean, RowValues


class TopCandidates(RowMean):
    """A mean over rows of something about the first `top_k` candidates of each."""

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
