"""Parts of a run as objects: features, parser, model, metrics."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.config.errors import BudgetExceeded
from penstock.config.section import Section
from penstock.config.sizes import MIB, format_size
from penstock.features.build import build_features, feature_names
from penstock.features.feature import Feature
from penstock.features.parser import Parser
from penstock.features.task_columns import SideColumns
from penstock.metrics.metric import divided, hold_within, needs_of
from penstock.metrics.wiring import BoundMetric, build_metrics, build_train_metrics
from penstock.models import build_model as build_model_of
from penstock.models.model import Model
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.readers.columns import project
from penstock.run.requirements import model_section, require_available, towers_of
from penstock.run.run_config import RunConfig
from penstock.runtime.budget import MemoryBudget, Share
from penstock.runtime.collectives import Collectives

if TYPE_CHECKING:
    from penstock.tensors.batch import Batch


def group_columns(run: RunConfig, *, training: bool) -> dict[str, str]:
    """The data column of every grouping_key: that of the feature of this name, or else the one called so."""
    keys = list(dict.fromkeys(_grouping_keys(model_section(run), training)))
    return columns_of(run, keys)


def columns_of(run: RunConfig, names: Sequence[str]) -> dict[str, str]:
    """The data column of every name: that of the feature of this name, or else the one called so."""
    named = [config for config in run.feature_configs if set(feature_names(config)) & set(names)]
    inputs = {feature.name: feature.inputs for feature in build_features(named, run.data_config)}
    return {name: inputs[name][0] if name in inputs else name for name in names}


def _grouping_keys(model: ModelConfig, training: bool) -> Iterator[str]:
    tasks: list[ModelConfig | TowerOptions] = [model, *towers_of(model)]
    for task in tasks:
        sections: Sequence[Section] = task.train_metrics if training else task.metrics
        for section in sections:
            chosen = section.chosen("metric")
            key = getattr(chosen[1], "grouping_key", None) if chosen is not None else None
            if key:
                yield key


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


MODES = ("train", "eval", "predict")


def used_features(run: RunConfig) -> list[Feature]:
    """The features that a feature group of the model uses."""
    groups = model_section(run).feature_groups
    used = {name for group in groups for name in group.feature_names}
    return build_features(run.feature_configs, run.data_config, used)


def build_parser(run: RunConfig, file_paths: list[str] | None = None, with_labels: bool = True) -> Parser:
    """What turns record batches into parsed columns for this run."""
    data = run.data_config
    labels, weights = (data.label_fields, data.sample_weight_fields) if with_labels else ((), ())
    model, features = model_section(run), used_features(run)
    side = SideColumns(model.masks(), session_columns(model, run) if with_labels else {})
    return Parser(features, labels, weights, file_paths or [], model.binary_labels(data.label_fields), side)


def session_columns(model: ModelConfig, run: RunConfig) -> dict[str, str]:
    """The column of every session_name: that of the feature of this name, or else the one called so."""
    names = model.session_names()
    return columns_of(run, names)


def build_model(run: RunConfig) -> "Model":
    """The model alone, unsharded, with fresh parameters: `model.predict(batch)`, `model.loss(predictions, batch)`.

    Its metrics are attached: `model.update_metric(predictions, batch)`, `model.compute_metric()`, and the same with
    `train_metric`. Batches must carry along the columns that metrics group by (`reserved_columns` of build_batch).
    """
    from penstock.training.task_metrics import TaskMetrics

    require_available(run)
    data = run.data_config
    model = build_model_of(
        model_section(run), used_features(run), data.label_fields, data.sample_weight_fields
    )
    model.attach_metrics(
        TaskMetrics(evaluation_metrics(model), group_columns(run, training=False)),
        TaskMetrics(training_metrics(model), group_columns(run, training=True)),
    )
    return model


def build_batch(
    run: RunConfig, table: pa.Table | pa.RecordBatch, reserved_columns: Sequence[str] = ()
) -> "Batch":
    """Parse one Arrow table with a run's features; labels are read where the table has them."""
    from penstock.tensors.packing import pack

    require_available(run)
    labels = [*run.data_config.label_fields, *run.data_config.sample_weight_fields]
    parser = build_parser(run, with_labels=all(name in table.schema.names for name in labels))
    needed = project(table.schema, [*dict.fromkeys([*parser.columns, *reserved_columns])], "the table")
    batch = one_record_batch(table.select(needed.names))
    reserves = batch.select(list(reserved_columns)) if reserved_columns else None
    return pack(parser.parse(batch), reserves)


def one_record_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """A table as one contiguous record batch."""
    if isinstance(table, pa.RecordBatch):
        return table
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


METRICS = "metrics"
"""The share of what an evaluation measures, behind the word for its stream."""
TRAIN_METRICS = "train metrics"
NOTEWORTHY_BYTES = MIB
"""Less than this finds room in what the plan leaves free."""
MOST_OF_THE_REST = 4
"""Metrics that need less than they could use get a quarter of what is left, and the data path the rest."""


def share_metrics(
    budget: MemoryBudget, name: str, metrics: Mapping[str, BoundMetric], num_rows: int, section: str = METRICS
) -> None:
    """A share for metrics that will see so many rows (those of training: in a step). `section` holds them in the file.

    Metrics that keep rows need some of them in memory at the least, and an exact xauc all of them.
    """
    needs = {key: needs_of(bound.metric, num_rows, bound.num_classes) for key, bound in metrics.items()}
    least, ample = (sum(each) for each in zip(*needs.values(), strict=True)) if needs else (0, 0)
    if ample < NOTEWORTHY_BYTES:
        return
    largest = max(needs, key=lambda key: needs[key].min_bytes)
    left = max(0, budget.unshared_bytes)
    if least > left:
        raise BudgetExceeded(
            f"{name} need {format_size(least)} at the least, {largest} {format_size(needs[largest].min_bytes)} of "
            f"it, but only {format_size(left)} of {format_size(budget.limit_bytes)} are left; "
            f"{_advice(metrics[largest], section)}, or raise memory.limit"
        )
    total = max(least, min(ample, left // MOST_OF_THE_REST))
    given = divided(needs, total)
    budget.share(name, total, setting=f"{section}.{max(given, key=given.__getitem__)}")


def bound_metrics(metrics: Mapping[str, BoundMetric], share: Share | None, num_rows: int) -> None:
    """Tell each metric its part of the share; without a share they keep to limits of their own."""
    if share is None:
        return
    needs = {key: needs_of(bound.metric, num_rows, bound.num_classes) for key, bound in metrics.items()}
    for key, limit_bytes in divided(needs, share.limit_bytes).items():
        hold_within(metrics[key].metric, limit_bytes, num_rows)


def _advice(bound: BoundMetric, section: str) -> str:
    """How to do with less than the metric that needs most."""
    is_exact = getattr(getattr(bound.metric, "metric", bound.metric), "exact", False)
    return f"leave out exact of {section}.{bound.name}" if is_exact else f"leave out {section}.{bound.name}"
