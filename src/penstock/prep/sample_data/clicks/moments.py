"""The circumstances of each row: when, on which device, and numbers that change from row to row."""

from dataclasses import dataclass

import numpy as np

from penstock.prep.sample_data.draws import FloatArray, IntArray, or_zero, sigmoid

_FIRST_SECOND = 1_704_067_200  # 2024-01-01 00:00:00 UTC
_SPAN_SECONDS = 28 * 24 * 3600
_DEVICE_CUMULATIVE_SHARES = np.array([0.6, 0.85, 0.95])
_DEVICE_EFFECTS = np.array([0.2, -0.2, 0.4, -0.9])
_CTR_MISSING = 0.12
_VISIT_MISSING = 0.10


@dataclass(frozen=True, slots=True)
class Moments:
    """One entry per row. Numbers are NaN where they are missing."""

    seconds: IntArray
    device: IntArray
    demand: FloatArray
    """How sought-after the item is at the moment; `ctr_7d` shows it."""
    days_since_visit: FloatArray

    @classmethod
    def draw(cls, rng: np.random.Generator, item_bias: FloatArray) -> "Moments":
        """Independent moments within four weeks."""
        size = len(item_bias)
        demand = 0.5 * item_bias + rng.normal(0.0, 0.6, size)
        demand[rng.random(size) < _CTR_MISSING] = np.nan
        days = np.round(rng.exponential(6.0, size), 1)
        days[rng.random(size) < _VISIT_MISSING] = np.nan
        return cls(
            seconds=_FIRST_SECOND + rng.integers(0, _SPAN_SECONDS, size),
            device=np.searchsorted(_DEVICE_CUMULATIVE_SHARES, rng.random(size), side="right"),
            demand=demand,
            days_since_visit=days,
        )

    @property
    def hour(self) -> IntArray:
        """Hour of the day, 0 to 23."""
        return self.seconds // 3600 % 24

    @property
    def ctr_7d(self) -> FloatArray:
        """The item's click rate of the last week, as it is known at the moment."""
        return sigmoid(self.demand - 1.5)

    def effect(self) -> FloatArray:
        """What the circumstances add to the logit of a click."""
        logit: FloatArray = (
            _DEVICE_EFFECTS[self.device]
            + 0.35 * np.cos((self.hour - 20) * (2.0 * np.pi / 24.0))
            + 0.7 * or_zero(self.demand)
            - 0.3 * or_zero(np.log1p(self.days_since_visit) - 1.6)
        )
        return logit
