"""Metrics by themselves, on arrays: every public one, on rows whose value is known."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import penstock

PREDS = np.arange(1, 9) / 10
CLICKED = np.array([1, 0, 1, 0, 0, 0, 1, 1])
SECONDS = np.array([0.2, 0.3, 0.5, 0.4, 0.3, 0.2, 0.8, 0.9])
USERS = np.array([1, 2, 2, 1, 3, 3, 4, 4])
CLASSES = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]])
SIMILARITIES = np.array([[0.9, 0.1, 0.3], [0.2, 0.8, 0.1], [0.1, 0.2, 0.3]])

EVERY_METRIC: dict[str, tuple[dict[str, Any], tuple[Any, ...], float]] = {
    "AUC": ({"thresholds": None}, (PREDS, CLICKED), 0.5625),
    "DecayAUC": ({"thresholds": 10}, (PREDS, CLICKED), 0.5625),
    "ExactAUC": ({}, (PREDS, CLICKED), 0.5625),
    "MulticlassAUC": ({"thresholds": 11, "average": "macro"}, (CLASSES, [0, 1, 1, 2]), 1.0),
    "GroupedAUC": ({"weight": "none"}, (PREDS, CLICKED, USERS), 0.5),
    "XAUC": ({"in_batch": False, "sample_ratio": 1e-3, "max_pairs": None}, (PREDS, SECONDS), 19 / 28),
    "GroupedXAUC": ({"max_pairs_per_group": 100}, (PREDS, SECONDS, USERS), 3 / 4),
    "Accuracy": ({"threshold": 0.5, "top_k": 1}, (PREDS, CLICKED), 4 / 8),
    "LogLoss": ({}, ([0.8, 0.5], [1, 0]), -(np.log(0.8) + np.log(0.5)) / 2),
    "NormalizedEntropy": ({"eta": 1e-12}, ([0.5, 0.5], [1, 0]), 1.0),
    "Calibration": ({}, (PREDS, CLICKED), 3.6 / 4),
    "MeanAbsoluteError": ({}, ([1.0, 2.0], [2.0, 4.0]), 1.5),
    "MeanSquaredError": ({}, ([1.0, 2.0], [2.0, 4.0]), 2.5),
    "RootMeanSquaredError": ({}, ([1.0, 2.0], [2.0, 4.0]), np.sqrt(2.5)),
    "RecallAtK": ({"top_k": 1}, (SIMILARITIES, np.ones(3)), 1 / 3),
    "HitRateAtK": ({"top_k": 2}, (SIMILARITIES, np.ones(3)), 2 / 3),
    "NDCGAtK": ({"top_k": 3}, (SIMILARITIES, np.ones(3)), (1 + 1 / np.log2(3) + 1 / np.log2(4)) / 3),
}


@pytest.mark.parametrize("name", EVERY_METRIC)
def test_every_metric_counts_merges_and_forgets(name: str):
    options, rows, expected = EVERY_METRIC[name]
    metric, half = (getattr(penstock.metrics, name)(**options) for _ in range(2))
    metric.update(*(column[:1] for column in rows))
    half.update(*(column[1:] for column in rows))
    metric.merge(half)

    assert metric.compute() == pytest.approx(expected)
    metric.reset()
    assert np.isnan(metric.compute())


def test_no_public_metric_is_left_out():
    metrics = {
        name for name in penstock.metrics.__all__ if hasattr(getattr(penstock.metrics, name), "compute")
    }

    assert metrics - {"Metric", "TrainMetricWrapper"} == EVERY_METRIC.keys()
    assert set(penstock.metrics.__all__) <= set(dir(penstock.metrics))
    with pytest.raises(AttributeError, match=r"module 'penstock.metrics' has no attribute 'Auc'"):
        _ = penstock.metrics.Auc


def test_metrics_need_no_torch():
    program = (
        "import sys, penstock\n"
        f"for name in {sorted(EVERY_METRIC)}: getattr(penstock.metrics, name)()\n"
        "print([name for name in ('torch', 'torchmetrics') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
