"""How long a batch may take before a worker counts as hanging."""

import statistics
from collections import deque
from dataclasses import dataclass

NUM_REMEMBERED = 101


@dataclass(frozen=True, slots=True)
class Patience:
    """A batch hangs past `least_seconds`, and past `times_median` times what half of the last batches took."""

    least_seconds: float = 60.0
    times_median: float = 50.0


DEFAULT_PATIENCE = Patience()


class Durations:
    """How long the last batches took."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=NUM_REMEMBERED)

    def add(self, seconds: float) -> None:
        """Count one batch."""
        self._seconds.append(seconds)

    @property
    def median_seconds(self) -> float | None:
        """What half of the last batches took at most; None before the first."""
        return statistics.median(self._seconds) if self._seconds else None

    def too_long(self, seconds: float, patience: Patience) -> bool:
        """Whether a batch that is not done after this time counts as hanging."""
        if seconds <= patience.least_seconds:
            return False
        return seconds > patience.times_median * (self.median_seconds or 0.0)
