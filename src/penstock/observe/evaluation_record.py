"""Evaluations as records: values, calibration bins, groups."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.metrics.auc import AUC
from penstock.metrics.wiring import BoundMetric
from penstock.training.evaluate import Evaluation
from penstock.training.progress import TrainingProgress


def evaluation_record(
    progress: TrainingProgress, evaluation: Evaluation, seconds: float, saved: bool
) -> dict[str, Any]:
    """One line; `saved` says whether there is a checkpoint of this step."""
    return {
        "step": progress.step,
        "epoch": progress.epoch,
        "metrics": evaluation.metrics,
        "losses": evaluation.losses,
        "rows": evaluation.rows,
        "seconds": round(seconds, 3),
        "checkpoint": f"step-{progress.step}" if saved else None,
        **({"calibration_bins": evaluation.calibration} if evaluation.calibration else {}),
        **({"group_auc": evaluation.group_auc} if evaluation.group_auc else {}),
        **({"remarks": evaluation.remarks} if evaluation.remarks else {}),
    }


def recalled(records: Iterable[Mapping[str, Any]], step: int) -> Evaluation | None:
    """The evaluation of a step that was made before."""
    for record in records:
        if record["step"] == step:
            return Evaluation(
                _numbers(record["metrics"]),
                _numbers(record["losses"]),
                record["rows"],
                remarks=record.get("remarks", {}),
            )
    return None


def told(evaluation: Evaluation | None) -> dict[str, float]:
    """Losses and metrics by name; none before the first evaluation."""
    return {} if evaluation is None else {**evaluation.losses, **evaluation.metrics}


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    """With those that are undefined as NaN again."""
    return {name: math.nan if value is None else value for name, value in values.items()}


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


MOST_GROUPS = 20


def group_auc(metrics: Mapping[str, BoundMetric]) -> list[dict[str, Any]]:
    """`group`, `rows` and `auc` of each, the largest first, of the first grouped AUC among the metrics.

    `auc` is None where a group has rows of one class only.
    """
    for bound in metrics.values():
        if hasattr(bound.metric, "largest_groups"):
            found = bound.metric.largest_groups(MOST_GROUPS)
            return [{"group": group, "rows": num_rows, "auc": area} for group, num_rows, area in found]
    return []
