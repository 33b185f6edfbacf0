"""Parts of a run as objects: features, parser, model, batch, and metrics with the memory they get."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pyarrow as pa
import torch
from torchrec.distributed.model_parallel import DistributedModelParallel

from penstock.config.errors import BudgetExceeded
from penstock.config.section import Section
from penstock.config.sizes import MIB, format_size
from penstock.distributed.groups import compute_device
from penstock.distributed.sharding import dense_parameters, shard
from penstock.features import build_features
from penstock.features.feature import Feature
from penstock.features.parser import Parser
from penstock.features.sections import named_features
from penstock.metrics.wiring import BoundMetric, build_metrics, hold_within, memory_needs
from penstock.models import build_model as build_model_of
from penstock.models.model import Model, TrainWrapper
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.optim.dense import DenseAverages
from penstock.optim.sparse import sparse_optimizer
from penstock.readers.columns import project
from penstock.run.requirements import model_section, require_available
from penstock.run.run_config import RunConfig
from penstock.runtime.budget import MemoryBudget, Share
from penstock.runtime.world import Collectives, World
from penstock.tensors.batch import Batch
from penstock.tensors.loader import pack
from penstock.training.sections import TrainConfig
from penstock.training.task_metrics import TaskMetrics


def used_features(run: RunConfig) -> list[Feature]:
    groups = model_section(run).feature_groups
    used = {name for group in groups for name in group.feature_names}
    return build_features(run.feature_configs, run.data_config, used)


def build_parser(run: RunConfig, file_paths: list[str] | None = None, with_labels: bool = True) -> Parser:
    data, model = run.data_config, model_section(run)
    labels, weights = (data.label_fields, data.sample_weight_fields) if with_labels else ((), ())
    binary, masks, sessions = model.label_columns(data.label_fields)
    session_columns = columns_of(run, sessions) if with_labels else {}
    return Parser(
        used_features(run), labels, weights, tuple(file_paths or ()), binary, masks, session_columns
    )


def build_model(run: RunConfig) -> Model:
    """The model alone, unsharded, with fresh parameters: `model.predict(batch)`, `model.loss(predictions, batch)`.

    Its metrics are attached: `model.update_metric(predictions, batch)`, `model.compute_metric()`, and the same with
    `train_metric`. Batches must carry along the columns that metrics group by (`reserved_columns` of build_batch).
    """
    require_available(run)
    model = make_model(run, used_features(run))
    model.attach_metrics(
        TaskMetrics(evaluation_metrics(model), group_columns(run, training=False)),
        TaskMetrics(training_metrics(model), group_columns(run, training=True)),
    )
    return model


def make_model(run: RunConfig, features: list[Feature], table_device: str | None = None) -> Model:
    """The model; on the device "meta" its tables are not allocated: for counting bytes, and for sharding."""
    labels, weights = run.data_config.label_fields, run.data_config.sample_weight_fields
    return build_model_of(model_section(run), features, labels, weights, table_device=table_device)


def build_batch(
    run: RunConfig, table: pa.Table | pa.RecordBatch, reserved_columns: Sequence[str] = ()
) -> Batch:
    """Parse one Arrow table with a run's features; labels are read where the table has them."""
    require_available(run)
    labels = [*run.data_config.label_fields, *run.data_config.sample_weight_fields]
    parser = build_parser(run, with_labels=all(name in table.schema.names for name in labels))
    needed = project(table.schema, [*dict.fromkeys([*parser.columns, *reserved_columns])], "the table")
    batch = table.select(needed.names)
    if isinstance(batch, pa.Table):
        batches = batch.combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=batch.schema)
    reserves = batch.select(list(reserved_columns)) if reserved_columns else None
    return pack(parser.parse(batch), reserves)


@dataclass(frozen=True, slots=True)
class ShardedModel:
    """The module that computes a loss, and the model inside that scores."""

    module: DistributedModelParallel
    model: Model
    device: torch.device
    """Where batches have to be."""
    averages: DenseAverages | None = None
    """Running means of the dense parameters, where the run keeps them."""

    def named_parameters(self) -> dict[str, torch.Tensor]:
        return dict(self.module.named_parameters())

    def averaged(self, wanted: bool) -> AbstractContextManager[None]:
        """Inside, the dense parameters hold their means, where these are wanted and kept."""
        return self.averages.applied() if wanted and self.averages is not None else nullcontext()

    def moved(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        return (batch.to(self.device) for batch in batches)


def shard_model(model: Model, train: TrainConfig | None, world: World) -> ShardedModel:
    """Allocate the tables where they belong; with `train`, their optimizer is fused into the backward pass."""
    device = compute_device(world)
    section = None if train is None else train.sparse_optimizer
    fused = None if section is None else sparse_optimizer(section, device.type)
    module = shard(TrainWrapper(model), fused, world)
    ema = None if train is None else train.dense_optimizer.ema
    averages = None if ema is None else DenseAverages(dense_parameters(module), ema.decay)
    return ShardedModel(module, model, device, averages)


METRICS = "metrics"
"""The share of what an evaluation measures, behind the word for its stream."""
TRAIN_METRICS = "train metrics"
MIN_SHARED_BYTES = MIB
"""Less than this fits into what the plan leaves free."""
MAX_PART_OF_REST = 4
"""Metrics that need less than they could use get a quarter of what is left, and the data path the rest."""


def group_columns(run: RunConfig, *, training: bool) -> dict[str, str]:
    model, keys = model_section(run), []
    tasks: list[ModelConfig | TowerOptions] = [model, *model.task_towers]
    for task in tasks:
        sections: Sequence[Section] = task.train_metrics if training else task.metrics
        chosen = [section.chosen("metric") for section in sections]
        keys += [getattr(each[1], "grouping_key", None) for each in chosen if each is not None]
    return columns_of(run, list(dict.fromkeys(filter(None, keys))))


def columns_of(run: RunConfig, names: Sequence[str]) -> dict[str, str]:
    """The data column of every name: that of the feature of this name, or else the one called so."""
    named = [
        config
        for config in run.feature_configs
        if any(each.name in names for each in named_features([config]))
    ]
    inputs = {feature.name: feature.inputs for feature in build_features(named, run.data_config)}
    return {name: inputs[name][0] if name in inputs else name for name in names}


def evaluation_metrics(model: Model) -> dict[str, BoundMetric]:
    """What evaluation measures, fresh; names end in `_{tower}` where there are towers."""
    return _of_tasks(model, "metrics")


def training_metrics(model: Model, collectives: Collectives | None = None) -> dict[str, BoundMetric]:
    """What is followed during training, fresh; with `collectives` over the rows of all ranks."""
    return _of_tasks(model, "train_metrics", collectives)


def _of_tasks(model: Model, key: str, collectives: Collectives | None = None) -> dict[str, BoundMetric]:
    found: dict[str, BoundMetric] = {}
    for task in model.tasks:
        built = build_metrics(
            getattr(task, key),
            model.prediction_names,
            label=task.label,
            tower=task.tower,
            path=f"{task.path}.{key}",
            collectives=collectives,
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
    needs = memory_needs(metrics, num_rows)
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
    largest = max(needs, key=lambda key: needs[key].ample_bytes)
    budget.share(name, total, setting=f"{section}.{largest}")


def bound_metrics(metrics: Mapping[str, BoundMetric], share: Share | None, num_rows: int) -> None:
    """Give each metric its part of the share; without a share they keep to their own limits."""
    if share is not None:
        hold_within(metrics, share.limit_bytes, num_rows)
