"""Where batches end, from the costs of rows alone."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from penstock.batching.costs import Costs

MOST_LIMIT = 2**62
"""Past it, whole numbers could not be added up exactly."""
_LEAST_LOOK_ROWS = 16


def is_over(costs: Costs, limit: float) -> NDArray[np.bool_]:
    """Which of these are more than the limit; whole numbers are compared as whole numbers."""
    return np.asarray(costs > (math.floor(limit) if costs.dtype == np.int64 else limit))


class Cutter:
    """Ends a batch before the first row with which it would cost more than the limit, or have too many rows.

    Costs are added one after another from the first row of a batch on, so that the sum of floating costs is the same
    however the rows arrive. A row that alone costs more than the limit is a batch of its own.
    """

    def __init__(self, limit: float, max_rows: int | None) -> None:
        self._limit = limit
        self._max_rows = max_rows
        self._num_rows = 0
        self._total: float = 0
        self._usual_rows = 0

    @property
    def is_full(self) -> bool:
        """Whether the rows that wait cost as much as they may."""
        return self._total >= self._limit

    def ends(self, costs: Costs) -> Iterator[int]:
        """The rows of a chunk before which a batch ends: 0 ends the one that was open when the chunk arrived.

        Rows after the last end stay open. There is one turn for each batch, not for each row, and a row is added up
        a few times at most.
        """
        start = 0
        while start < len(costs):
            looked_at = costs[start : start + self._rows_to_look_at()]
            num_fitting = self._take_fitting(looked_at)
            start += num_fitting
            if num_fitting == len(looked_at) and self._num_rows != self._max_rows:
                continue
            if not self._num_rows:
                self._num_rows = 1
                start += 1
            self._usual_rows = self._num_rows
            self._num_rows, self._total = 0, 0
            yield start

    def _rows_to_look_at(self) -> int:
        """About as many as the last batch had, and twice as many each time that this was not enough."""
        num_rows = max(_LEAST_LOOK_ROWS, 2 * self._usual_rows, self._num_rows)
        return num_rows if self._max_rows is None else min(num_rows, self._max_rows - self._num_rows)

    def _take_fitting(self, costs: Costs) -> int:
        """Add the longest prefix of these rows that fits, and say how many they are."""
        sums = costs.copy()
        sums[:1] += self._total
        np.cumsum(sums, out=sums)
        # The first sum that leaves int64 comes out negative, and is above every limit when read without a sign.
        over = (
            is_over(sums, self._limit) if sums.dtype != np.int64 else _is_over_or_wrapped(sums, self._limit)
        )
        num_fitting = int(np.argmax(over)) if over.any() else len(costs)
        self._num_rows += num_fitting
        if num_fitting:
            self._total = sums[num_fitting - 1].item()
        return num_fitting


def _is_over_or_wrapped(sums: NDArray[np.int64], limit: float) -> NDArray[np.bool_]:
    return np.asarray(sums.view(np.uint64) > math.floor(limit))
