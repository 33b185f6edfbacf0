"""Which metric reads which prediction: one table, and the objects built from it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import ConfigError, Problem
from penstock.config.registry import Registry
from penstock.metrics.metric import Metric, Values


@dataclass(frozen=True, slots=True)
class Wire:
    """What a metric of the run file is made of."""

    place: str
    """Its class, as "package.module:attribute"; made by its `from_section`."""

    reads: tuple[str, ...]
    """The predictions it can read; it takes the first one that the model gives."""


METRICS: dict[str, Wire] = {
    "auc": Wire("penstock.metrics.auc:AUC", reads=("probs", "probs1")),
    "log_loss": Wire("penstock.metrics.log_loss:LogLoss", reads=("probs", "probs1")),
}
"""The metrics of the run file, by the name of their section."""


@dataclass(slots=True)
class BoundMetric:
    """A metric, the prediction it reads, and the label it is held against."""

    name: str
    metric: Metric
    prediction: str
    label: str

    def update(self, predictions: Mapping[str, Values], labels: Mapping[str, Values]) -> None:
        """Add one batch."""
        self.metric.update(predictions[self.prediction], labels[self.label])

    def compute(self) -> float:
        """The value over all rows so far, NaN when undefined."""
        return self.metric.compute()


def build_metrics(
    configs: Sequence[Any],
    predictions_available: Collection[str],
    *,
    label: str,
    tower: str | None = None,
    path: str = "model_config.metrics",
) -> dict[str, BoundMetric]:
    """The metrics of a list of `MetricConfig`, by result name; every one that cannot be wired is a problem.

    With a tower, predictions and results carry the suffix `_{tower}`.
    """
    suffix = f"_{tower}" if tower else ""
    bound: dict[str, BoundMetric] = {}
    problems: list[Problem] = []
    classes: Registry[Any] = Registry("metric", {name: wire.place for name, wire in METRICS.items()})
    for index, config in enumerate(configs):
        name, section = config.chosen("metric")
        problem, prediction = _wire(name, suffix, predictions_available)
        if problem is None and name + suffix in bound:
            problem = f"'{name}' is there twice; results are named by metric"
        if problem is not None:
            problems.append(Problem(f"{path}[{index}].{name}", problem))
            continue
        metric: Metric = classes.get(name).from_section(section)
        bound[name + suffix] = BoundMetric(name + suffix, metric, prediction, label)
    if problems:
        raise ConfigError(problems)
    return bound


def _wire(name: str, suffix: str, available: Collection[str]) -> tuple[str | None, str]:
    """The problem of wiring a metric to a model, if any, and the prediction it will read."""
    if name not in METRICS:
        return f"not available yet; available: {', '.join(METRICS)}", ""
    candidates = [prediction + suffix for prediction in METRICS[name].reads]
    for prediction in candidates:
        if prediction in available:
            return None, prediction
    needed, given = " or ".join(candidates), ", ".join(sorted(available))
    return f"'{name}' needs the prediction {needed}; this model gives {given}", ""
