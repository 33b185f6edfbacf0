"""Observed against predicted rates, from the histogram of an AUC."""

import numpy as np
import pytest

from penstock.metrics.auc import AUC
from penstock.training.evaluate import NUM_BINS, bins_of


def counted(predictions: list[float] | np.ndarray, labels: list[int] | np.ndarray) -> np.ndarray:
    metric = AUC()
    metric.update(np.asarray(predictions), np.asarray(labels))
    counts: np.ndarray = metric.state_dict()["counts"]
    return counts


def test_rows_of_two_predictions_make_two_bins() -> None:
    found = bins_of(counted([0.25] * 4 + [0.75] * 4, [0, 0, 0, 1, 1, 1, 1, 0]))

    assert found["predicted"] == pytest.approx([0.25, 0.75], abs=1e-5)
    assert found["observed"] == [0.25, 0.75]
    assert found["rows"] == [4, 4]


def test_a_calibrated_model_lies_on_the_diagonal() -> None:
    generator = np.random.default_rng(0)
    predictions = generator.uniform(size=100_000)
    labels = generator.uniform(size=100_000) < predictions

    found = bins_of(counted(predictions, labels.astype(int)))

    assert len(found["rows"]) == NUM_BINS
    assert sum(found["rows"]) == 100_000
    assert found["observed"] == pytest.approx(found["predicted"], abs=0.025)


def test_without_rows_there_are_no_bins() -> None:
    assert bins_of(AUC().state_dict()["counts"]) == {"predicted": [], "observed": [], "rows": []}
