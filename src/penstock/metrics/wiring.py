"""Which metric reads which prediction: one table, and the objects built from it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import ConfigError, DataError, PenstockError, Problem
from penstock.config.registry import CustomPart, Registry, error_text, result_name
from penstock.metrics.metric import Metric, Values
from penstock.metrics.reducing import reduced
from penstock.metrics.windows import TrainMetricWrapper
from penstock.runtime.collectives import Collectives

PROBABILITY = ("probs1", "probs")
"""The probability of a positive: with two classes that of the second, with one the only one."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What a metric of the run file is made of."""

    place: str
    """Its class, as "package.module:attribute"; made by its `from_section`."""

    reads: tuple[str, ...]
    """The predictions it can read; it takes the first one that the model gives. Empty: its section says which."""

    needs_groups: bool = False
    """Whether `update` takes a third argument, the column that its section calls `grouping_key`."""

    train_place: str = ""
    """The class that stands for it in windows of training; empty: the same."""


METRICS: dict[str, Wire] = {
    "auc": Wire("penstock.metrics.auc:AUC", PROBABILITY, train_place="penstock.metrics.decay_auc:DecayAUC"),
    "multiclass_auc": Wire("penstock.metrics.multiclass_auc:MulticlassAUC", ("probs",)),
    "grouped_auc": Wire("penstock.metrics.grouped_auc:GroupedAUC", PROBABILITY, needs_groups=True),
    "xauc": Wire("penstock.metrics.xauc:XAUC", ("y",)),
    "grouped_xauc": Wire("penstock.metrics.grouped_xauc:GroupedXAUC", ("y",), needs_groups=True),
    "accuracy": Wire("penstock.metrics.accuracy:Accuracy", ("probs",)),
    "log_loss": Wire("penstock.metrics.log_loss:LogLoss", PROBABILITY),
    "normalized_entropy": Wire("penstock.metrics.normalized_entropy:NormalizedEntropy", PROBABILITY),
    "calibration": Wire("penstock.metrics.calibration:Calibration", PROBABILITY),
    "mean_absolute_error": Wire("penstock.metrics.regression:MeanAbsoluteError", ("y",)),
    "mean_squared_error": Wire("penstock.metrics.regression:MeanSquaredError", ("y",)),
    "root_mean_squared_error": Wire("penstock.metrics.regression:RootMeanSquaredError", ("y",)),
    "recall_at_k": Wire("penstock.metrics.retrieval:RecallAtK", ("similarities",)),
    "hit_rate_at_k": Wire("penstock.metrics.retrieval:HitRateAtK", ("similarities",)),
    "ndcg_at_k": Wire("penstock.metrics.retrieval:NDCGAtK", ("similarities",)),
    "custom_metric": Wire("penstock.metrics.custom:CustomMetric", ()),
}
"""The metrics of the run file, by the name of their section."""


@dataclass(slots=True)
class BoundMetric:
    """A metric, the prediction it reads, and the label it is held against."""

    name: str
    metric: Metric
    prediction: str
    label: str
    grouping_key: str | None = None
    """The column that tells which rows belong together, for metrics that group."""

    num_classes: int = 1
    """Classes of the task."""

    own_place: str | None = None
    """Where a metric of one's own stands; None for those of Penstock."""

    def update(
        self,
        predictions: Mapping[str, Values],
        labels: Mapping[str, Values],
        groups: Mapping[str, Values] | None = None,
    ) -> None:
        """Add one batch; `groups` holds the grouping columns by name."""
        columns = () if self.grouping_key is None else (self._group_column(self.grouping_key, groups or {}),)
        with self.failures_told():
            self.metric.update(predictions[self.prediction], labels[self.label], *columns)

    def compute(self, collectives: Collectives | None = None) -> float:
        """The value over all rows so far, NaN when undefined; with `collectives` over those of all ranks."""
        with self.failures_told():
            return (self.metric if collectives is None else reduced(self.metric, collectives)).compute()

    @contextmanager
    def failures_told(self) -> Iterator[None]:
        """What fails in a metric of one's own is told with its place."""
        try:
            yield
        except PenstockError:
            raise
        except Exception as error:
            if self.own_place is None:
                raise
            raise DataError(f"custom_metric '{self.own_place}': fails: {error_text(error)}") from error

    def _group_column(self, key: str, groups: Mapping[str, Values]) -> Values:
        if key not in groups:
            known = ", ".join(sorted(groups)) or "none"
            raise DataError(f"{self.name}: needs the column '{key}'; grouping columns: {known}")
        return groups[key]


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
    places = {name: wire.place for name, wire in METRICS.items()}
    bound = _bound(configs, predictions_available, places, label, tower, path)
    return {metric.name: metric for metric, _ in bound}


def build_train_metrics(
    configs: Sequence[Any],
    predictions_available: Collection[str],
    *,
    label: str,
    tower: str | None = None,
    path: str = "model_config.train_metrics",
    collectives: Collectives | None = None,
) -> dict[str, BoundMetric]:
    """The metrics of a list of `TrainMetricConfig`, by result name, each over windows that fade.

    With `collectives` a window is closed over the rows of all ranks.
    """
    places = {name: wire.train_place or wire.place for name, wire in METRICS.items()}
    bound = _bound(configs, predictions_available, places, label, tower, path)
    for metric, config in bound:
        metric.metric = TrainMetricWrapper(metric.metric, config.decay_rate, config.decay_step, collectives)
    return {metric.name: metric for metric, _ in bound}


def _bound(
    configs: Sequence[Any],
    available: Collection[str],
    places: Mapping[str, str],
    label: str,
    tower: str | None,
    path: str,
) -> list[tuple[BoundMetric, Any]]:
    """Each metric with the config it comes from; all problems at once."""
    suffix = f"_{tower}" if tower else ""
    classes: Registry[Any] = Registry("metric", places)
    bound: dict[str, tuple[BoundMetric, Any]] = {}
    problems: list[Problem] = []
    for index, config in enumerate(configs):
        key, section = config.chosen("metric")
        name, place = result_name(key, section), f"{path}[{index}].{key}"
        problem, prediction = _wire(key, section, suffix, available)
        if problem is None and name in bound:
            problem = f"'{name}' is there twice; results are named by metric"
        if problem is not None:
            problems.append(Problem(place, problem))
            continue
        try:
            metric: Metric = classes.get(key).from_section(section)
        except ConfigError as error:
            problems.append(Problem(place, str(error)))
            continue
        groups = section.grouping_key if METRICS[key].needs_groups else None
        own_place = section.place if isinstance(section, CustomPart) else None
        bound[name] = (
            BoundMetric(name + suffix, metric, prediction, label, groups, own_place=own_place),
            config,
        )
    if problems:
        raise ConfigError(problems)
    return list(bound.values())


def _wire(name: str, section: Any, suffix: str, available: Collection[str]) -> tuple[str | None, str]:
    """The problem of wiring a metric to a model, if any, and the prediction it will read."""
    candidates = [prediction + suffix for prediction in METRICS[name].reads or (section.reads,)]
    for prediction in candidates:
        if prediction in available:
            return None, prediction
    needed, given = " or ".join(candidates), ", ".join(sorted(available))
    return f"'{name}' needs the prediction {needed}; this model gives {given}", ""
