"""Parts of a run as objects: features, parser, model, batch."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pyarrow as pa
import torch
from torchrec.distributed.model_parallel import DistributedModelParallel

from penstock.distributed.groups import compute_device
from penstock.distributed.sharding import dense_parameters, shard
from penstock.features.build import build_features
from penstock.features.feature import Feature
from penstock.features.parser import Parser
from penstock.features.task_columns import SideColumns
from penstock.models import build_model as build_model_of
from penstock.models.model import Model, TrainWrapper
from penstock.optim.ema import DenseAverages
from penstock.optim.sparse import sparse_optimizer, start_accumulators
from penstock.readers.columns import project
from penstock.run.metrics import columns_of, evaluation_metrics, group_columns, training_metrics
from penstock.run.requirements import model_section, require_available
from penstock.run.run_config import RunConfig
from penstock.runtime.world import World
from penstock.tensors.batch import Batch
from penstock.tensors.packing import pack
from penstock.training.sections import TrainConfig
from penstock.training.task_metrics import TaskMetrics


def used_features(run: RunConfig) -> list[Feature]:
    """The features that a feature group of the model uses."""
    groups = model_section(run).feature_groups
    used = {name for group in groups for name in group.feature_names}
    return build_features(run.feature_configs, run.data_config, used)


def build_parser(run: RunConfig, file_paths: list[str] | None = None, with_labels: bool = True) -> Parser:
    """What turns record batches into parsed columns for this run."""
    data, model = run.data_config, model_section(run)
    labels, weights = (data.label_fields, data.sample_weight_fields) if with_labels else ((), ())
    sessions = columns_of(run, model.session_names()) if with_labels else {}
    side = SideColumns(model.masks(), sessions)
    binary = model.binary_labels(data.label_fields)
    return Parser(used_features(run), labels, weights, file_paths or [], binary, side)


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
    if section is None:
        module = shard(TrainWrapper(model), None, world)
    else:
        module = shard(TrainWrapper(model), sparse_optimizer(section, device.type), world)
        start_accumulators(section, module.fused_optimizer)
    ema = None if train is None else train.dense_optimizer.ema
    averages = None if ema is None else DenseAverages(dense_parameters(module), ema.decay)
    return ShardedModel(module, model, device, averages)
