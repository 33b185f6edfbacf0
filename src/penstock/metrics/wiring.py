"""From the run file to metrics that read a model's predictions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from penstock.config.errors import ConfigError, DataError, PenstockError, Problem
from penstock.config.registry import Registry, error_text, make_part, require_call, result_name
from penstock.metrics.metric import Metric, Values, reduced
from penstock.metrics.sections import CustomMetric, MetricSection
from penstock.metrics.windows import TrainMetricWrapper
from penstock.runtime.collectives import Collectives

_CLASSES: Registry[Any] = Registry("metric")


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

    custom: str | None = None
    """Where a custom metric is defined; None for those of Penstock."""

    def update(
        self,
        predictions: Mapping[str, Values],
        labels: Mapping[str, Values],
        groups: Mapping[str, Values] | None = None,
    ) -> None:
        """Add one batch; `groups` holds the grouping columns by name."""
        groups = groups or {}
        columns = () if self.grouping_key is None else (self.grouping_key,)
        for column in columns:
            if column not in groups:
                known = ", ".join(sorted(groups)) or "none"
                raise DataError(f"{self.name}: needs the column '{column}'; grouping columns: {known}")
        with self.naming_failures():
            self.metric.update(
                predictions[self.prediction], labels[self.label], *(groups[column] for column in columns)
            )

    def compute(self, collectives: Collectives | None = None) -> float:
        """The value over all rows so far, NaN when undefined; with `collectives` over those of all ranks."""
        with self.naming_failures():
            return (self.metric if collectives is None else reduced(self.metric, collectives)).compute()

    @contextmanager
    def naming_failures(self) -> Iterator[None]:
        try:
            yield
        except PenstockError:
            raise
        except Exception as error:
            if self.custom is None:
                raise
            raise DataError(f"custom_metric '{self.custom}': fails: {error_text(error)}") from error


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
    built = _built(configs, predictions_available, label, tower, path, training=False)
    return {metric.name: metric for metric, _ in built}


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
    built = _built(configs, predictions_available, label, tower, path, training=True)
    for metric, config in built:
        metric.metric = TrainMetricWrapper(metric.metric, config.decay_rate, config.decay_step, collectives)
    return {metric.name: metric for metric, _ in built}


def _built(
    configs: Sequence[Any],
    available: Collection[str],
    label: str,
    tower: str | None,
    path: str,
    training: bool,
) -> list[tuple[BoundMetric, Any]]:
    """Each metric with the config it comes from; all problems at once."""
    suffix = f"_{tower}" if tower else ""
    bound: dict[str, tuple[BoundMetric, Any]] = {}
    problems: list[Problem] = []
    for index, config in enumerate(configs):
        key, section = cast(tuple[str, MetricSection], config.chosen("metric"))
        name, where = result_name(key, section), f"{path}[{index}].{key}"
        candidates = [prediction + suffix for prediction in section.readable()]
        prediction = next((each for each in candidates if each in available), None)
        if prediction is None:
            needed, given = " or ".join(candidates), ", ".join(sorted(available))
            problems.append(
                Problem(where, f"'{key}' needs the prediction {needed}; this model gives {given}")
            )
            continue
        if name in bound:
            problems.append(Problem(where, f"'{name}' is there twice; results are named by metric"))
            continue
        try:
            metric: Metric = _CLASSES.get(section.class_path(training))(**section.arguments())
        except ConfigError as error:
            problems.append(Problem(where, str(error)))
            continue
        one = BoundMetric(
            name + suffix,
            metric,
            prediction,
            label,
            getattr(section, "grouping_key", None),
            custom=section.place if isinstance(section, CustomMetric) else None,
        )
        bound[name] = (one, config)
    if problems:
        raise ConfigError(problems)
    return list(bound.values())


def custom_metric(section: CustomMetric) -> Metric:
    """The user's metric, if it has everything that a metric needs."""
    metric = make_part("metric", section)
    needed = [name for name in vars(Metric) if not name.startswith("_")]
    missing = [name for name in needed if not hasattr(metric, name)]
    if missing:
        raise ConfigError(
            f"custom_metric '{section.place}': has no {', '.join(missing)}; "
            "penstock.metrics.sums.RowMean has all but the number of a row"
        )
    require_call("metric", section, metric.update, "(preds, target)")
    value: object = 0.0
    with suppress(Exception):  # one that has no value yet is asked again when it has seen rows
        value = metric.compute()
    if not hasattr(value, "__float__"):
        raise ConfigError(f"custom_metric '{section.place}': compute gives {value!r}, no number")
    return cast(Metric, metric)
