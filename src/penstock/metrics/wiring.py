"""From the run file to metrics that read a model's predictions."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from penstock.config.errors import ConfigError, DataError, PenstockError, Problem
from penstock.config.registry import Registry, error_text, make_part, require_call
from penstock.metrics.metric import Bounded, MemoryNeeds, Metric, Values
from penstock.metrics.sections import (
    CustomMetric,
    MetricConfig,
    MetricSection,
    TrainMetricConfig,
    metric_names,
)
from penstock.metrics.windows import TrainMetricWrapper
from penstock.runtime.world import Collectives

_CLASSES: Registry[Any] = Registry("metric")


@dataclass(slots=True)
class BoundMetric:
    """A metric, the prediction it reads, and the label it is held against."""

    name: str
    metric: Metric
    prediction: str
    label: str
    grouping_key: str | None = None
    """The column by which rows belong together, for metrics that group."""

    num_classes: int = 1
    custom: str | None = None
    """Where a custom metric is defined; None for those of Penstock."""

    def update(
        self,
        predictions: Mapping[str, Values],
        labels: Mapping[str, Values],
        groups: Mapping[str, Values] | None = None,
    ) -> None:
        """Add one batch; `groups` holds the grouping columns by name."""
        rows = [predictions[self.prediction], labels[self.label]]
        if self.grouping_key is not None:
            if not groups or self.grouping_key not in groups:
                known = ", ".join(sorted(groups or ())) or "none"
                raise DataError(
                    f"{self.name}: needs the column '{self.grouping_key}'; grouping columns: {known}"
                )
            rows.append(groups[self.grouping_key])
        try:
            self.metric.update(*rows)
        except Exception as error:
            self.raise_named(error)

    def raise_named(self, error: Exception) -> NoReturn:
        """Raise what the metric raised; of a custom one as a DataError that says where it is defined."""
        if self.custom is None or isinstance(error, PenstockError):
            raise error
        raise DataError(f"custom_metric '{self.custom}': fails: {error_text(error)}") from error


def build_metrics(
    configs: Sequence[MetricConfig] | Sequence[TrainMetricConfig],
    predictions_available: Collection[str],
    *,
    label: str,
    tower: str | None = None,
    path: str = "model_config.metrics",
    num_classes: int = 1,
    collectives: Collectives | None = None,
) -> dict[str, BoundMetric]:
    """The metrics of a list in the run file, by result name; every one that cannot be wired is a problem.

    With a tower, predictions and results carry the suffix `_{tower}`. Those of training are over windows that fade;
    with `collectives` a window is closed over the rows of all ranks.
    """
    suffix = f"_{tower}" if tower else ""
    bound: dict[str, BoundMetric] = {}
    problems: list[Problem] = []
    for index, (name, config) in enumerate(zip(metric_names(configs), configs, strict=True)):
        key, section = cast(tuple[str, MetricSection], config.chosen("metric"))
        where = f"{path}[{index}].{key}"
        readable = (section.reads,) if isinstance(section, CustomMetric) else section.predictions
        candidates = [prediction + suffix for prediction in readable]
        prediction = next((each for each in candidates if each in predictions_available), None)
        if prediction is None:
            needed, given = " or ".join(candidates), ", ".join(sorted(predictions_available))
            problems.append(
                Problem(where, f"'{key}' needs the prediction {needed}; this model gives {given}")
            )
            continue
        if name + suffix in bound:
            problems.append(Problem(where, f"'{name}' is there twice; results are named by metric"))
            continue
        try:
            kind, arguments = section.component(isinstance(config, TrainMetricConfig))
            metric: Metric = _CLASSES.get(kind)(**arguments)
        except ConfigError as error:
            problems.append(Problem(where, str(error)))
            continue
        if isinstance(config, TrainMetricConfig):
            metric = TrainMetricWrapper(metric, config.decay_rate, config.decay_step, collectives)
        grouping_key = getattr(section, "grouping_key", None)
        custom = section.import_path if isinstance(section, CustomMetric) else None
        bound[name + suffix] = BoundMetric(
            name + suffix, metric, prediction, label, grouping_key, num_classes, custom
        )
    if problems:
        raise ConfigError(problems)
    return bound


def custom_metric(section: CustomMetric) -> Metric:
    """The user's metric, if it has everything that a metric needs."""
    metric = make_part("metric", section)
    needed = [name for name in vars(Metric) if not name.startswith("_")]
    missing = [name for name in needed if not hasattr(metric, name)]
    if missing:
        raise ConfigError(
            f"custom_metric '{section.import_path}': has no {', '.join(missing)}; "
            "penstock.metrics.sums.RowMean has all but the number of a row"
        )
    require_call("metric", section, metric.update, "(preds, target)")
    value: object = 0.0
    with suppress(Exception):  # one that has no value yet is asked again when it has seen rows
        value = metric.compute()
    if not hasattr(value, "__float__"):
        raise ConfigError(f"custom_metric '{section.import_path}': compute gives {value!r}, no number")
    return cast(Metric, metric)


def memory_needs(metrics: Mapping[str, BoundMetric], num_rows: int) -> dict[str, MemoryNeeds]:
    """What the metrics need for so many rows, by name; a custom one that is not `Bounded` is left out."""
    return {
        name: bound.metric.memory_needs(num_rows, bound.num_classes)
        for name, bound in metrics.items()
        if isinstance(bound.metric, Bounded)
    }


def hold_within(metrics: Mapping[str, BoundMetric], limit_bytes: int, num_rows: int) -> None:
    """Give each metric its need, and of the rest in proportion to what it could use beyond that."""
    needs = memory_needs(metrics, num_rows)
    spare = max(0, limit_bytes - sum(need.min_bytes for need in needs.values()))
    wanted = sum(need.ample_bytes - need.min_bytes for need in needs.values())
    for name, need in needs.items():
        more = (need.ample_bytes - need.min_bytes) * min(spare, wanted) // max(1, wanted)
        cast(Bounded, metrics[name].metric).hold_within(need.min_bytes + more, num_rows)
