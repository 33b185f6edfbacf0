"""Evaluations on the way of a training run, as lines of eval_result.jsonl and back."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.loops.evaluate import Evaluation
from penstock.loops.progress import TrainingProgress


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
