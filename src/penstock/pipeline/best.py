"""Which evaluated checkpoint was the best."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.config.errors import CheckpointError
from penstock.config.nearest import hint
from penstock.export.sections import ExportConfig

EvaluationRecord = Mapping[str, Any]


def best_step(evaluations: Iterable[EvaluationRecord], export: ExportConfig) -> int | None:
    """The saved step with the best value of export_config.best_exporter_metric; None where there is none.

    The earliest of equals wins, so that a later tie changes nothing.
    """
    direction = 1 if export.metric_larger_is_better else -1
    best: tuple[float, int] | None = None
    for record in evaluations:
        value = values_of(record).get(export.best_exporter_metric)
        if value is None or record["checkpoint"] is None:
            continue
        if best is None or direction * value > best[0]:
            best = (direction * value, record["step"])
    return best[1] if best is not None else None


def require_best_step(evaluations: Sequence[EvaluationRecord], export: ExportConfig, folder: str) -> int:
    """The best step, or an error that says why there is none."""
    if not evaluations:
        raise CheckpointError(f"{folder}: nothing was evaluated yet; evaluate first, then ask for the best")
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
