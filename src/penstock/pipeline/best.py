"""Which evaluated checkpoint was the best."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from penstock.config.errors import CheckpointError
from penstock.config.nearest import hint
from penstock.export.sections import ExportConfig

EvaluationRecord = Mapping[str, Any]

SMALLER_IS_BETTER = frozenset(
    {"log_loss", "mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "normalized_entropy"}
)
"""Metrics of which less is better; all losses are too."""


def larger_is_better(export: ExportConfig, losses: Collection[str]) -> bool:
    """What export_config says; where it does not, what the metric's name says."""
    if "metric_larger_is_better" in export.model_fields_set:
        return export.metric_larger_is_better
    metric = export.best_exporter_metric
    return metric not in SMALLER_IS_BETTER and metric not in losses


def best_step(evaluations: Iterable[EvaluationRecord], export: ExportConfig) -> int | None:
    """The saved step with the best value of export_config.best_exporter_metric; None where there is none.

    The earliest of equals wins, so that a later tie changes nothing.
    """
    best: tuple[float, int] | None = None
    for record in evaluations:
        direction = 1 if larger_is_better(export, record["losses"]) else -1
        value = values_of(record).get(export.best_exporter_metric)
        if value is None or record["checkpoint"] is None:
            continue
        if best is None or direction * value > best[0]:
            best = (direction * value, record["step"])
    return best[1] if best is not None else None


def require_best_step(evaluations: Sequence[EvaluationRecord], export: ExportConfig, folder: str) -> int:
    """The best step, or an error that says why there is none."""
    if not evaluations:
        raise CheckpointError(
            f"{folder}: training evaluated nothing, so that no checkpoint is the best; "
            "train with eval_input_path, or name a checkpoint"
        )
    step = best_step(evaluations, export)
    if step is None:
        metric, known = export.best_exporter_metric, values_of(evaluations[-1])
        raise CheckpointError(
            f"{folder}: export_config.best_exporter_metric is '{metric}', which no saved step was evaluated by; "
            f"{hint(metric, known)}"
        )
    return step


def values_of(record: EvaluationRecord) -> dict[str, float]:
    """Metrics and losses of one evaluation, by name; undefined ones are left out."""
    return {
        name: value for name, value in {**record["losses"], **record["metrics"]}.items() if value is not None
    }
