"""Which evaluation is the best, which checkpoint it belongs to, and when to wait for a better one no longer."""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from penstock.config.errors import CheckpointError, hint
from penstock.metrics.sections import Best, best_value
from penstock.optim.sections.schedules import MetricMode
from penstock.runtime.world import State
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


class BestMetric(NamedTuple):
    name: str = "auc"
    larger_is_better: bool | None = None
    """None: as the name says."""


def best_step(evaluations: Iterable[EvaluationRecord], metric: BestMetric) -> int | None:
    """The saved step with the best value, the earliest of equals; None where there is none."""
    found: list[tuple[float, int]] = []
    for record in evaluations:
        larger = metric.larger_is_better
        if larger is None:
            larger = not smaller_is_better(metric.name, record["losses"])
        value = record["metrics"].get(metric.name, record["losses"].get(metric.name))
        if value is not None and record["checkpoint"] is not None:
            found.append((-value if larger else value, record["step"]))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def require_best_step(evaluations: Sequence[EvaluationRecord], metric: BestMetric, folder: str) -> int:
    """The best step, or an error that says why there is none."""
    if not evaluations:
        raise CheckpointError(
            f"{folder}: training evaluated nothing, so that no checkpoint is the best; "
            "train with eval_input_path, or name a checkpoint"
        )
    step = best_step(evaluations, metric)
    if step is None:
        last = {**evaluations[-1]["losses"], **evaluations[-1]["metrics"]}
        known = [name for name, value in last.items() if value is not None]
        raise CheckpointError(
            f"{folder}: export_config.best_exporter_metric is '{metric.name}', which no saved step was evaluated by; "
            f"{hint(metric.name, known)} (--set export_config.best_exporter_metric=NAME)"
        )
    return step


@dataclass(slots=True)
class EarlyStop:
    """Counts evaluations since the best one; its state is part of the checkpoint."""

    metric: str
    patience: int
    min_delta: float = 0.0
    larger_is_better: bool = True
    restore_best: bool = True
    best: float | None = None
    best_step: int | None = None
    waited: int = 0
    """Evaluations since the best one."""

    @classmethod
    def of(cls, section: EarlyStopping, losses: Collection[str]) -> "EarlyStop":
        """What a run file asks for; without `mode`, the metric's name says which way is better."""
        larger = not smaller_is_better(section.metric, losses)
        if "mode" in section.model_fields_set:
            larger = section.mode is MetricMode.max
        return cls(section.metric, section.patience, section.min_delta, larger, section.restore_best)

    @property
    def due(self) -> bool:
        return self.waited >= self.patience

    def update(self, step: int, value: float) -> bool:
        """Count the evaluation of a step; gives whether it is the best so far.

        The earliest of equals stays the best, and an undefined value is never better.
        """
        gain = math.inf if self.best is None else value - self.best
        gain = gain if self.best is None or self.larger_is_better else -gain
        if not math.isnan(value) and gain > self.min_delta:
            self.best, self.best_step, self.waited = value, step, 0
            return True
        self.waited += 1
        return False

    def reason(self) -> str:
        best = "never defined" if self.best is None else f"best {self.best:.6g} at step {self.best_step}"
        evaluations = "1 evaluation" if self.waited == 1 else f"{self.waited} evaluations"
        return f"{self.metric} got no better in {evaluations} ({best})"

    def mark(self) -> str:
        """What `MARK` says after a run went back to its best step."""
        facts = {"step": self.best_step, "metric": self.metric, "value": self.best}
        return json.dumps({**facts, "checkpoint": f"step-{self.best_step}"}) + "\n"

    def state_dict(self) -> State:
        return {key: getattr(self, key) for key in ("metric", "best", "best_step", "waited")}

    def load_state_dict(self, state: State) -> None:
        """Go on waiting; a run that now watches another metric starts again with it."""
        if state["metric"] == self.metric:
            self.best, self.best_step, self.waited = state["best"], state["best_step"], state["waited"]


MARK = "best.json"
"""The file of a model_dir that says which checkpoint an early-stopped run ended with."""


def marked_step(folder: Path) -> int | None:
    """The step that a run ended with, where it went back to its best one."""
    try:
        return int(json.loads((folder / MARK).read_text(encoding="utf-8"))["step"])
    except (OSError, ValueError, KeyError):
        return None
