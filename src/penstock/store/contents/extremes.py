"""The least and the greatest of values that come by chunks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.store.batch_file.values import Values

_ORDERED = "biufmM"
"""Kinds of NumPy types that have a least and a greatest value: numbers, times."""
_WITH_NAN = "fmM"


@dataclass(slots=True)
class Extremes:
    """Of the values seen so far; NaN, and times that are none, are counted and left out."""

    least: Any = None
    most: Any = None
    num_nan: int = 0

    def add(self, values: Values) -> None:
        """Look at some more."""
        if not values.size or values.dtype.kind not in _ORDERED:
            return
        least, most = values.min(), values.max()
        if values.dtype.kind in _WITH_NAN and np.isnan(least):
            is_nan = np.isnan(values)
            self.num_nan += int(np.count_nonzero(is_nan))
            values = values[~is_nan]
            if not values.size:
                return
            least, most = values.min(), values.max()
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)
