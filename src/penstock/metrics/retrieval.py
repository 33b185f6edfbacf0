"""How well the right candidates are found among all candidates of a row.

Candidates are ordered by similarity, the wrong ones first among equals: a model that finds everything equally
similar finds nothing. Rows without a right candidate say nothing and are not counted.
"""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.metrics.inputs import CandidateRows, candidate_rows
from penstock.metrics.metric import Settings, Values
from penstock.metrics.sums import RowMean, RowValues


class TopCandidates(RowMean):
    """A mean over rows of something about the first `top_k` candidates of each."""

    def __init__(self, top_k: int = 5) -> None:
        if top_k < 1:
            raise DataError(f"{self.name}: top_k is {top_k}; it looks at 1 candidate or more")
        super().__init__()
        self._top_k = top_k

    @classmethod
    def from_section(cls, section: Any) -> Self:
        """With as many candidates as the run file says."""
        return cls(section.top_k)

    @property
    def settings(self) -> Settings:
        """What rows are counted by."""
        return {"top_k": self._top_k}

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        rows = candidate_rows(preds, target, self.name)
        num_relevant = np.count_nonzero(rows.is_relevant, axis=1)
        values = self._found(_in_order(rows)[:, : self._top_k], num_relevant)
        return RowValues(values[num_relevant > 0], rows.num_left_out)

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
    """Gain of the first k candidates, discounted by log2(place + 1), over that of the best order."""

    name = "ndcg_at_k"

    def _found(self, top: NDArray[np.bool_], num_relevant: NDArray[np.intp]) -> NDArray[Any]:
        discounts = 1.0 / np.log2(np.arange(2, top.shape[1] + 2))
        best_by_number = np.concatenate([[0.0], np.cumsum(discounts)])
        best = best_by_number[np.minimum(num_relevant, top.shape[1])]
        return top @ discounts / np.where(best > 0, best, 1.0)


def _in_order(rows: CandidateRows) -> NDArray[np.bool_]:
    """Which candidates are right, from the most similar on; two stable sorts, the last by similarity."""
    order = np.lexsort((rows.is_relevant, -rows.similarities), axis=-1)
    return np.take_along_axis(rows.is_relevant, order, axis=1)
