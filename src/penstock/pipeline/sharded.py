"""A run's model, sharded and ready to train or to score."""

from dataclasses import dataclass

import torch
from torchrec.distributed.model_parallel import DistributedModelParallel

from penstock.distributed.sharding import shard
from penstock.features.feature import Feature
from penstock.loops.sections import TrainConfig
from penstock.models import build_model
from penstock.models.model import Model, TrainWrapper
from penstock.optim.sparse import sparse_optimizer, table_parameters
from penstock.pipeline.requirements import model_section
from penstock.pipeline.run_config import RunConfig
from penstock.runtime.world import World

STATE_PER_WEIGHT = {"adagrad_optimizer": 1.0, "sgd_optimizer": 0.0}
"""Bytes of optimizer state beside each byte of a table; row-wise ones keep one number per row instead."""

DENSE_COPIES = 4
"""A dense parameter, its gradient, and two moments."""

STEP_COPIES = 12
"""Activations, gradients and their temporaries, as multiples of a batch's embedded width (measured, rounded up)."""


@dataclass(frozen=True, slots=True)
class ShardedModel:
    """The module that computes a loss, and the model inside that scores."""

    module: DistributedModelParallel
    model: Model


def unallocated_model(run: RunConfig, features: list[Feature]) -> Model:
    """The model without its tables: for counting bytes, and for sharding."""
    data = run.data_config
    return build_model(
        model_section(run), features, data.label_fields, data.sample_weight_fields, table_device="meta"
    )


def shard_model(model: Model, train: TrainConfig | None, world: World) -> ShardedModel:
    """Allocate the tables where they belong; with `train`, their optimizer is fused into the backward pass."""
    optimizer = sparse_optimizer(train.sparse_optimizer) if train is not None else None
    return ShardedModel(shard(TrainWrapper(model), optimizer, world), model)


def model_bytes(model: Model, train: TrainConfig | None) -> int:
    """Bytes of tables, dense parameters and the state of their optimizers."""
    tables = dict(table_parameters(model))
    table_bytes = sum(size_of(table) + state_bytes(table, train) for table in tables.values())
    dense = [size_of(parameter) for name, parameter in model.named_parameters() if name not in tables]
    return table_bytes + sum(dense) * (DENSE_COPIES if train is not None else 1)


def state_bytes(table: torch.Tensor, train: TrainConfig | None) -> int:
    """Bytes of the optimizer state of one table."""
    chosen = train.sparse_optimizer.chosen("optimizer") if train is not None else None
    if chosen is None:
        return 0
    per_weight = STATE_PER_WEIGHT.get(chosen[0])
    return int(size_of(table) * per_weight) if per_weight is not None else table.shape[0] * 4


def step_bytes(model: Model, batch_size: int) -> int:
    """Bytes that one step needs beside the parameters, by the width of what a batch is embedded to."""
    groups = model.embedding_group
    width = sum(groups.width(name) for name in groups.plan.groups)
    return batch_size * width * 4 * STEP_COPIES


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of a tensor, also of one that is not allocated."""
    return tensor.numel() * tensor.element_size()
