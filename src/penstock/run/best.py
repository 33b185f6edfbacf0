"""Which evaluated checkpoint was the best."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.config.errors import CheckpointError
from penstock.config.nearest import hint
from penstock.export.sections import ExportConfig
from penstock.metrics.sections import Best, best_value
from penstock.optim.sections.schedules import MetricMode
from penstock.training.early_stopping import EarlyStop
from penstock.training.sections import EarlyStopping

EvaluationRecord = Mapping[str, Any]


def smaller_is_better(metric: str, losses: Collection[str]) -> bool:
    """What the name of a result says about its direction: `log_loss_buy` is a log_loss."""
    return metric in losses or best_value(metric) is Best.min


def best_of(metric: str, values: Collection[float], losses: Collection[str]) -> float | None:
    """The best of several values of a result; None where its name does not say which way is better."""
    if smaller_is_better(metric, losses):
        return min(values)
    if best_value(metric) is Best.one:
        return min(values, key=lambda value: abs(value - 1))
    return max(values) if best_value(metric) is Best.max else None


def larger_is_better(export: ExportConfig, losses: Collection[str]) -> bool:
    """What export_config says; where it does not, what the metric's name says."""
    if "metric_larger_is_better" in export.model_fields_set:
        return export.metric_larger_is_better
    return not smaller_is_better(export.best_exporter_metric, losses)


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
            f"{hint(metric, known)} (--set export_config.best_exporter_metric=NAME)"
        )
    return step


def early_stop_of(section: EarlyStopping | None, losses: Collection[str]) -> EarlyStop | None:
    """What watches the evaluations of a run; without `mode`, the metric's name says which way is better."""
    if section is None:
        return None
    by_name = not smaller_is_better(section.metric, losses)
    written = "mode" in section.model_fields_set
    return EarlyStop(
        metric=section.metric,
        patience=section.patience,
        min_delta=section.min_delta,
        larger_is_better=section.mode is MetricMode.max if written else by_name,
        restore_best=section.restore_best,
    )


MARK = "best.json"
"""The file of a model_dir that says which checkpoint an early-stopped run ended with."""


def marked_step(folder: Path) -> int | None:
    """The step that a run ended with, where it went back to its best one."""
    try:
        return int(json.loads((folder / MARK).read_text(encoding="utf-8"))["step"])
    except (OSError, ValueError, KeyError):
        return None


def mark(early_stop: EarlyStop) -> str:
    """What the file says."""
    facts = {"step": early_stop.best_step, "metric": early_stop.metric, "value": early_stop.best}
    return json.dumps({**facts, "checkpoint": f"step-{early_stop.best_step}"}) + "\n"


def values_of(record: EvaluationRecord) -> dict[str, float]:
    """Metrics and losses of one evaluation, by name; undefined ones are left out."""
    return {
        name: value for name, value in {**record["losses"], **record["metrics"]}.items() if value is not None
    }
