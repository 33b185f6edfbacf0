"""How well the best possible model would do, measured while rows are written and in a fixed number of bytes.

Labels are drawn with known probabilities from what the columns show, so no model can rank rows better than
the probabilities themselves, up to chance. Their AUC on the drawn labels is the best attainable one.
"""

import numpy as np
import numpy.typing as npt

from penstock.prep.sample_data.draws import FloatArray

_NUM_BINS = 1 << 18


class AttainableAuc:
    """AUC of the true probabilities against the drawn labels.

    Probabilities are counted in 2^18 bins, apart for both labels (4 MiB). Rows that share a bin count as
    ties, which changes the AUC by less than 1e-5.
    """

    def __init__(self) -> None:
        self._counts = np.zeros((2, _NUM_BINS), dtype=np.int64)

    def update(self, probabilities: FloatArray, labels: npt.NDArray[np.int64]) -> None:
        """Count some rows."""
        bins = np.minimum((probabilities * _NUM_BINS).astype(np.int64), _NUM_BINS - 1)
        for label in (0, 1):
            self._counts[label] += np.bincount(bins[labels == label], minlength=_NUM_BINS)

    def merge(self, other: "AttainableAuc") -> None:
        """Add what another one counted."""
        self._counts += other._counts

    def rate(self) -> float:
        """Share of rows with label 1."""
        return float(self._counts[1].sum() / max(self._counts.sum(), 1))

    def compute(self) -> float | None:
        """The AUC, or None where all labels are equal."""
        negatives, positives = self._counts
        num_pairs = int(negatives.sum()) * int(positives.sum())
        if num_pairs == 0:
            return None
        negatives_below = np.cumsum(negatives) - negatives
        ordered_pairs = np.dot(positives.astype(np.float64), negatives_below + 0.5 * negatives)
        return float(ordered_pairs / num_pairs)


class AttainableError:
    """Root mean squared error of the true means against the drawn values: the smallest a model can have."""

    def __init__(self) -> None:
        self._num_rows = 0
        self._sum_values = 0.0
        self._sum_squared_errors = 0.0

    def update(self, expectations: FloatArray, values: npt.NDArray[np.float32]) -> None:
        """Count some rows."""
        exact = values.astype(np.float64)
        self._num_rows += len(exact)
        self._sum_values += float(exact.sum())
        self._sum_squared_errors += float(np.square(exact - expectations).sum())

    def merge(self, other: "AttainableError") -> None:
        """Add what another one counted."""
        self._num_rows += other._num_rows
        self._sum_values += other._sum_values
        self._sum_squared_errors += other._sum_squared_errors

    def mean(self) -> float:
        """Mean of the drawn values."""
        return self._sum_values / max(self._num_rows, 1)

    def compute(self) -> float:
        """The root mean squared error."""
        return float((self._sum_squared_errors / max(self._num_rows, 1)) ** 0.5)


class AttainableAccuracy:
    """How often the likeliest of several choices is the one that was drawn: no guess is right more often."""

    def __init__(self, num_choices: int) -> None:
        self._counts = np.zeros(num_choices, dtype=np.int64)
        self._num_best = 0

    def update(self, probabilities_NK: FloatArray, labels_N: npt.NDArray[np.int64]) -> None:
        """Count some rows."""
        self._counts += np.bincount(labels_N, minlength=len(self._counts))
        self._num_best += int((probabilities_NK.argmax(axis=1) == labels_N).sum())

    def largest_share(self) -> float:
        """Share of the most frequent choice: how often a guess is right that looks at nothing."""
        return float(self._counts.max() / max(self._counts.sum(), 1))

    def compute(self) -> float:
        """The accuracy."""
        return float(self._num_best / max(self._counts.sum(), 1))
