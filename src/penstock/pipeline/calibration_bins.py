"""Observed against predicted rates, from what an AUC has counted anyway."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.metrics.auc import AUC
from penstock.metrics.wiring import BoundMetric

NUM_BINS = 20
"""Bins of about as many rows each: where predictions are many, the curve is fine."""


def calibration_bins(metrics: Mapping[str, BoundMetric]) -> dict[str, dict[str, list[float]]]:
    """By the name of each AUC among the metrics; an exact one keeps no histogram, and has none."""
    bins = {
        name: bins_of(bound.metric.state_dict()["counts"])
        for name, bound in metrics.items()
        if isinstance(bound.metric, AUC)
    }
    return {name: found for name, found in bins.items() if found["rows"]}


def bins_of(counts: NDArray[Any]) -> dict[str, list[float]]:
    """Mean prediction, observed rate and rows of each bin, from counts of negatives and positives by prediction."""
    rows = counts.sum(axis=0)
    step = 1 / max(1, len(rows) - 1)
    centers = np.minimum((np.arange(len(rows)) + 0.5) * step, 1.0)
    # A slot goes as a whole into the bin that the middle of its rows falls into.
    middle = np.cumsum(rows) - rows / 2
    which = np.minimum((middle * NUM_BINS / max(1, rows.sum())).astype(np.int64), NUM_BINS - 1)
    in_bin = np.bincount(which, rows, NUM_BINS)
    used = in_bin > 0
    predicted = np.bincount(which, rows * centers, NUM_BINS)[used] / in_bin[used]
    observed = np.bincount(which, counts[1], NUM_BINS)[used] / in_bin[used]
    return {
        "predicted": np.round(predicted, 6).tolist(),
        "observed": np.round(observed, 6).tolist(),
        "rows": in_bin[used].astype(int).tolist(),
    }
