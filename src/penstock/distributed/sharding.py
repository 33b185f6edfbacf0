"""Divides the embedding tables of a model among the ranks, their optimizer fused into the backward pass."""

from typing import Any

import torch
from torch import nn
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.model_parallel import DistributedModelParallel, get_default_sharders
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import (
    KernelConfig,
    ParameterConstraints,
    PlannerError,
    TopologyFactory,
    TrainerConfig,
)
from torchrec.distributed.types import ShardingPlan, ShardingType
from torchrec.modules.embedding_configs import BaseEmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.optim.optimizers import in_backward_optimizer_filter

from penstock.config.errors import ConfigError
from penstock.config.sizes import TIB
from penstock.distributed.groups import compute_device
from penstock.optim.row_adam import RowAdam, RowAdamSettings, use_row_adam
from penstock.optim.sparse import attach_sparse_optimizer, table_parameters
from penstock.runtime.world import World

# Data-parallel tables are left out because they would ignore the fused optimizer, column-wise ones because a
# row-wise optimizer is another algorithm on them. torchrec shards pooled tables row-wise on GPU only.
_SHARDING_TYPES = {
    "cpu": [ShardingType.TABLE_WISE.value],
    "cuda": [ShardingType.TABLE_WISE.value, ShardingType.ROW_WISE.value],
}

# The run's memory plan decides whether the tables fit into the host; the planner has only to divide them.
_HOST_MEMORY_BYTES = 1024 * TIB
_DEVICE_MEMORY_RESERVED = 0.15


def shard(
    model: nn.Module,
    sparse_optimizer: tuple[type[torch.optim.Optimizer], dict[str, Any]] | None,
    world: World,
) -> DistributedModelParallel:
    """The model with its embedding tables divided among the ranks; a process group must be open.

    Each rank makes its part of the pooled tables again by their `init_fn`: values that `model` holds already
    are not carried over, so tables are best on the meta device until here, where they take no memory.
    `sparse_optimizer` (class and settings) updates the tables in the backward pass; frozen tables
    (`requires_grad` False) do not move. Without one (evaluation, prediction) backward must not be called.
    """
    device = compute_device(world)
    trainable = {name for name, table in table_parameters(model) if table.requires_grad}
    if sparse_optimizer is not None:
        attach_sparse_optimizer((table for _, table in table_parameters(model)), sparse_optimizer)
    sharded = DistributedModelParallel(
        model,
        device=device,
        plan=plan_tables(model, world, device),
        sharders=get_default_sharders(),
        # One process has nobody to average gradients with.
        init_data_parallel=world.num_ranks > 1,
    )
    if sparse_optimizer is not None and sparse_optimizer[0] is RowAdam:
        use_row_adam(sharded, trainable, RowAdamSettings(**sparse_optimizer[1]))
    return sharded


def plan_tables(model: nn.Module, world: World, device: torch.device) -> ShardingPlan:
    """Which rank holds which table. Every rank comes to the same plan by itself, or to the same error."""
    constraints = {
        table.name: ParameterConstraints(
            sharding_types=_SHARDING_TYPES[device.type],
            compute_kernels=[EmbeddingComputeKernel.FUSED.value],
            pooling_factors=[1.0] * len(table.feature_names),
        )
        for table in table_configs(model)
    }
    on_gpu = device.type == "cuda"
    trainer = TrainerConfig(
        world_size=world.num_ranks,
        local_world_size=min(world.num_ranks, torch.cuda.device_count()) if on_gpu else world.num_ranks,
        hbm_cap_bytes=torch.cuda.get_device_properties(device).total_memory if on_gpu else None,
        ddr_cap_bytes=_HOST_MEMORY_BYTES,
    )
    planner = EmbeddingShardingPlanner(
        topology=TopologyFactory.create_topology(
            trainer, kernel_config=KernelConfig(compute_device=device.type)
        ),
        storage_reservation=FixedPercentageStorageReservation(_DEVICE_MEMORY_RESERVED if on_gpu else 0.0),
        constraints=constraints,
        stats=[],
        debug=False,
    )
    try:
        return planner.plan(model, get_default_sharders())
    except PlannerError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"the embedding tables cannot be divided among {world.num_ranks} ranks: {reason}"
        ) from None


def table_configs(model: nn.Module) -> list[BaseEmbeddingConfig]:
    configs: list[BaseEmbeddingConfig] = []
    for module in model.modules():
        if isinstance(module, EmbeddingBagCollection):
            configs += module.embedding_bag_configs()
        elif isinstance(module, EmbeddingCollection):
            configs += module.embedding_configs()
    return configs


def dense_parameters(model: DistributedModelParallel) -> dict[str, nn.Parameter]:
    """The parameters that an ordinary optimizer has to move: all but those that backward itself updates."""
    named = in_backward_optimizer_filter(model.named_parameters())
    return {name: parameter for name, parameter in named if parameter.requires_grad}
