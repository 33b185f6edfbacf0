"""Whether a column ascends with the rows, and whether equal values stand together."""

from typing import Any

import numpy as np


class RowOrder:
    """Counts how neighbours compare; pieces of the data come in the order of the data."""

    def __init__(self) -> None:
        self.rises = self.falls = self.ties = 0
        self._last: Any = None

    def add(self, values: Any) -> None:
        """See the values of consecutive rows (NumPy, without nulls)."""
        if not len(values):
            return
        if self._last is not None:
            values = np.concatenate([np.array([self._last], values.dtype), values])
        before, after = values[:-1], values[1:]
        rises, falls = int(np.count_nonzero(after > before)), int(np.count_nonzero(after < before))
        self.rises += rises
        self.falls += falls
        self.ties += len(after) - rises - falls
        self._last = values[-1]

    @property
    def is_ascending(self) -> bool:
        """Whether no row is below the one before, and some are above."""
        return self.rises > 0 and self.falls == 0

    @property
    def change_rate(self) -> float:
        """Which part of neighbours differ."""
        total = self.rises + self.falls + self.ties
        return (self.rises + self.falls) / total if total else 0.0

    @property
    def fall_rate(self) -> float:
        """Which part of the neighbours that differ go down: 0 when sorted, about a half in random order."""
        changes = self.rises + self.falls
        return self.falls / changes if changes else 0.0
