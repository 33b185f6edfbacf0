"""Mean, deviation, extremes and quantiles of numbers, in bounded memory, in one pass."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

SAMPLE_SIZE = 32_768
"""Numbers that a sample has at least, once there are more of them than twice as many."""
RANK_ERROR = math.sqrt(math.log(2 / 0.01) / (2 * SAMPLE_SIZE))
"""By Dvoretzky, Kiefer and Wolfowitz: in 99 of 100 samples, all ranks are right to this part of the rows."""


class NumberStatistics:
    """Of the numbers of one feature. Up to 65,536 numbers quantiles are exact, then they are those of a sample."""

    def __init__(self, seed: int = 0) -> None:
        self.num_numbers = 0
        self.num_missing = 0
        """Rows without a number."""
        self.mean = 0.0
        self.min_value, self.max_value = math.inf, -math.inf
        self._squares = 0.0
        """The sum of squared differences to the mean."""
        self._random = np.random.default_rng(seed)
        self._draws = np.zeros(0)
        self._kept: Numbers = np.zeros(0)
        self._part = 1.0
        """The part of all numbers that is in the sample: those with a smaller draw."""

    @property
    def deviation(self) -> float:
        return math.sqrt(self._squares / self.num_numbers) if self.num_numbers else 0.0

    @property
    def is_exact(self) -> bool:
        return self._part == 1

    @property
    def sample(self) -> Numbers:
        """A uniform sample, or all numbers where they are few; sorted."""
        return np.sort(self._kept)

    def add(self, numbers: NDArray[np.generic], num_missing: int = 0) -> None:
        """NaN and infinities are left out: they count as missing."""
        values = np.asarray(numbers, np.float64)
        finite = np.isfinite(values)
        self.num_missing += num_missing + len(values) - int(np.count_nonzero(finite))
        values = values[finite]
        if not len(values):
            return
        # Means and squares of two parts together (Chan, Golub, LeVeque).
        mean = float(values.mean())
        total, difference = self.num_numbers + len(values), mean - self.mean
        self._squares += float(np.square(values - mean).sum())
        self._squares += difference**2 * self.num_numbers * len(values) / total
        self.mean += difference * len(values) / total
        self.num_numbers = total
        self.min_value = min(self.min_value, float(values.min()))
        self.max_value = max(self.max_value, float(values.max()))
        draws = self._random.random(len(values))
        if self._part < 1:
            chosen = draws < self._part
            values, draws = values[chosen], draws[chosen]
        self._kept, self._draws = np.concatenate([self._kept, values]), np.concatenate([self._draws, draws])
        while len(self._kept) > 2 * SAMPLE_SIZE:
            self._part /= 2
            chosen = self._draws < self._part
            self._kept, self._draws = self._kept[chosen], self._draws[chosen]


def quantile_boundaries(ordered: Numbers, num_intervals: int) -> list[float]:
    """Where intervals of about equally many of these sorted numbers begin, without the first; fewer where few differ.

    A number so frequent that it fills an interval has one of its own, and the others share the rest: of a column
    that is mostly 0, the rest is cut as finely as any other column. Boundaries are numbers that occur.
    """
    values, counts = np.unique(ordered, return_counts=True)
    if len(values) <= num_intervals:
        return _rounded(values[1:])
    is_heavy = counts * num_intervals > len(ordered)
    num_light = max(1, num_intervals - int(np.count_nonzero(is_heavy)))
    starts = {int(index) for index in np.flatnonzero(is_heavy)}
    starts |= {index + 1 for index in starts}
    light = np.where(is_heavy, 0, counts)
    if total := int(light.sum()):
        before = np.cumsum(light) - light
        targets = np.arange(1, num_light) * total / num_light
        starts |= {int(index) for index in np.searchsorted(before, targets, side="left")}
    return _rounded(values[sorted(index for index in starts if 0 < index < len(values))])


def _rounded(boundaries: Sequence[float] | Numbers) -> list[float]:
    """As a run file shows them: of fractions six digits are enough, where they keep the boundaries apart."""
    given = [float(value) for value in boundaries]
    short = [value if value.is_integer() else float(f"{value:.6g}") for value in given]
    return short if all(before < after for before, after in pairwise(short)) else given
