"""The metrics of a run as objects, and the memory they get."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from penstock.config.errors import BudgetExceeded
from penstock.config.section import Section
from penstock.config.sizes import MIB, format_size
from penstock.features.build import build_features, feature_names
from penstock.metrics.metric import divided, hold_within, needs_of
from penstock.metrics.wiring import BoundMetric, build_metrics, build_train_metrics
from penstock.models.model import Model
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.run.requirements import model_section
from penstock.run.run_config import RunConfig
from penstock.runtime.budget import MemoryBudget, Share
from penstock.runtime.collectives import Collectives

METRICS = "metrics"
"""The share of what an evaluation measures, behind the word for its stream."""
TRAIN_METRICS = "train metrics"
MIN_SHARED_BYTES = MIB
"""Less than this fits into what the plan leaves free."""
MAX_PART_OF_REST = 4
"""Metrics that need less than they could use get a quarter of what is left, and the data path the rest."""


def group_columns(run: RunConfig, *, training: bool) -> dict[str, str]:
    """The data column of every grouping_key: that of the feature of this name, or else the one called so."""
    model, keys = model_section(run), []
    tasks: list[ModelConfig | TowerOptions] = [model, *model.task_towers]
    for task in tasks:
        sections: Sequence[Section] = task.train_metrics if training else task.metrics
        chosen = [section.chosen("metric") for section in sections]
        keys += [getattr(each[1], "grouping_key", None) for each in chosen if each is not None]
    return columns_of(run, list(dict.fromkeys(filter(None, keys))))


def columns_of(run: RunConfig, names: Sequence[str]) -> dict[str, str]:
    """The data column of every name: that of the feature of this name, or else the one called so."""
    named = [config for config in run.feature_configs if set(feature_names(config)) & set(names)]
    inputs = {feature.name: feature.inputs for feature in build_features(named, run.data_config)}
    return {name: inputs[name][0] if name in inputs else name for name in names}


def evaluation_metrics(model: Model) -> dict[str, BoundMetric]:
    """What evaluation measures, fresh; names end in `_{tower}` where there are towers."""
    return _of_tasks(model, "metrics", build_metrics)


def training_metrics(model: Model, collectives: Collectives | None = None) -> dict[str, BoundMetric]:
    """What is followed during training, fresh; with `collectives` over the rows of all ranks."""
    return _of_tasks(model, "train_metrics", partial(build_train_metrics, collectives=collectives))


def _of_tasks(model: Model, key: str, build: Callable[..., dict[str, BoundMetric]]) -> dict[str, BoundMetric]:
    found: dict[str, BoundMetric] = {}
    for task in model.tasks:
        built = build(
            getattr(task, key),
            model.prediction_names,
            label=task.label,
            tower=task.tower,
            path=f"{task.path}.{key}",
        )
        for metric in built.values():
            metric.num_classes = task.num_class
        found |= built
    return found


def share_metrics(
    budget: MemoryBudget, name: str, metrics: Mapping[str, BoundMetric], num_rows: int, section: str = METRICS
) -> None:
    """A share for metrics that will see so many rows (those of training: in a step). `section` holds them in the file.

    Metrics that keep rows need some of them in memory at the least, and an exact xauc all of them.
    """
    needs = {key: needs_of(bound.metric, num_rows, bound.num_classes) for key, bound in metrics.items()}
    least, ample = (sum(each) for each in zip(*needs.values(), strict=True)) if needs else (0, 0)
    if ample < MIN_SHARED_BYTES:
        return
    largest = max(needs, key=lambda key: needs[key].min_bytes)
    left = max(0, budget.unshared_bytes)
    if least > left:
        metric = metrics[largest].metric
        keeps_all: bool = getattr(getattr(metric, "metric", metric), "exact", False)
        raise BudgetExceeded(
            f"{name} need {format_size(least)} at the least, {largest} {format_size(needs[largest].min_bytes)} of "
            f"it, but only {format_size(left)} of {format_size(budget.limit_bytes)} are left; "
            f"leave out {'exact of ' * keeps_all}{section}.{metrics[largest].name}, "
            "or raise memory.limit"
        )
    total = max(least, min(ample, left // MAX_PART_OF_REST))
    given = divided(needs, total)
    budget.share(name, total, setting=f"{section}.{max(given, key=given.__getitem__)}")


def bound_metrics(metrics: Mapping[str, BoundMetric], share: Share | None, num_rows: int) -> None:
    """Give each metric its part of the share; without a share they keep to their own limits."""
    if share is None:
        return
    needs = {key: needs_of(bound.metric, num_rows, bound.num_classes) for key, bound in metrics.items()}
    for key, limit_bytes in divided(needs, share.limit_bytes).items():
        hold_within(metrics[key].metric, limit_bytes, num_rows)
