"""A run's model, sharded and ready to train or to score."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torchrec.distributed.model_parallel import DistributedModelParallel

from penstock.distributed.groups import compute_device
from penstock.distributed.sharding import dense_parameters, shard
from penstock.features.feature import Feature
from penstock.models import build_model
from penstock.models.model import Model, TrainWrapper
from penstock.optim.ema import DenseAverages
from penstock.optim.sections import DenseOptimizer
from penstock.optim.sparse import sparse_optimizer, start_accumulators, table_parameters
from penstock.run.requirements import model_section
from penstock.run.run_config import RunConfig
from penstock.runtime.world import World
from penstock.tensors.batch import Batch
from penstock.training.sections import TrainConfig

DENSE_COPIES = 4
"""A dense parameter, its gradient, and two moments."""

AMSGRAD_COPIES = 1
"""The largest second moment so far."""

AVERAGE_COPIES = 2
"""A running mean, and the parameter that waits while the mean stands in for it."""

EMBEDDED_COPIES = 12
"""Looked-up vectors, groups joined from them, gradients and temporaries, as multiples of the width of all groups."""

LAYER_COPIES = 4
"""Output, activation and their gradients, as multiples of a layer's width."""

FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class ShardedModel:
    """The module that computes a loss, and the model inside that scores."""

    module: DistributedModelParallel
    model: Model
    device: torch.device
    """Where batches have to be."""

    averages: DenseAverages | None = None
    """Running means of the dense parameters, where the run keeps them."""

    def averaged(self, wanted: bool) -> AbstractContextManager[None]:
        """Inside, the dense parameters hold their means, where these are wanted and kept."""
        return self.averages.applied() if wanted and self.averages is not None else nullcontext()

    def moved(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Batches on the device of the model."""
        return (batch.to(self.device) for batch in batches)


def unallocated_model(run: RunConfig, features: list[Feature]) -> Model:
    """The model without its tables: for counting bytes, and for sharding."""
    data = run.data_config
    return build_model(
        model_section(run), features, data.label_fields, data.sample_weight_fields, table_device="meta"
    )


def shard_model(model: Model, train: TrainConfig | None, world: World) -> ShardedModel:
    """Allocate the tables where they belong; with `train`, their optimizer is fused into the backward pass."""
    device = compute_device(world)
    section = None if train is None else train.sparse_optimizer
    if section is None:
        module = shard(TrainWrapper(model), None, world)
    else:
        module = shard(TrainWrapper(model), sparse_optimizer(section, device.type), world)
        start_accumulators(section, module.fused_optimizer)
    return ShardedModel(module, model, device, None if train is None else averages_of(train, module))


def averages_of(train: TrainConfig, module: DistributedModelParallel) -> DenseAverages | None:
    """The running means that the run file asks for."""
    ema = train.dense_optimizer.ema
    return None if ema is None else DenseAverages(dense_parameters(module), ema.decay)


def model_bytes(model: Model, train: TrainConfig | None) -> int:
    """Bytes of tables, dense parameters and the state of their optimizers."""
    tables = dict(table_parameters(model))
    table_bytes = sum(size_of(table) + state_bytes(table, train) for table in tables.values())
    dense = [size_of(parameter) for name, parameter in model.named_parameters() if name not in tables]
    if train is None:
        return table_bytes + sum(dense)
    return table_bytes + sum(dense) * dense_copies(train.dense_optimizer)


def dense_copies(section: DenseOptimizer) -> int:
    """How often a dense parameter is there, with what optimizers keep beside it; as the hungriest part asks for."""
    chosen = [options.chosen("optimizer") for options in (section, *section.part_optimizers)]
    has_amsgrad = any(getattr(each[1], "amsgrad", False) for each in chosen if each is not None)
    return (
        DENSE_COPIES
        + (AMSGRAD_COPIES if has_amsgrad else 0)
        + (AVERAGE_COPIES if section.ema is not None else 0)
    )


def state_bytes(table: torch.Tensor, train: TrainConfig | None) -> int:
    """Bytes of the optimizer state of one table."""
    section = None if train is None else train.sparse_optimizer
    chosen = None if section is None else section.chosen("optimizer")
    if chosen is None:
        return 0
    per_weight = chosen[1].state_per_weight
    return int(size_of(table) * per_weight) if per_weight is not None else table.shape[0] * 4


def step_bytes(model: Model, batch_size: int) -> int:
    """Bytes that one step needs beside the parameters: what a batch is embedded to, and what the layers make of it."""
    groups = model.embedding_group
    embedded = sum(groups.width(name) for name in groups.plan.groups)
    layers = sum(module.out_features for module in model.modules() if isinstance(module, torch.nn.Linear))
    return batch_size * (embedded * EMBEDDED_COPIES + layers * LAYER_COPIES) * FLOAT_BYTES


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of a tensor, also of one that is not allocated."""
    return tensor.numel() * tensor.element_size()
