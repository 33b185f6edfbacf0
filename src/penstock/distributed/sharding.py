"""Divides the embedding tables of a model among the ranks, their optimizer fused into the backward pass."""

import torch
from torch import nn
from torch.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward
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
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizer
from torchrec.optim.optimizers import in_backward_optimizer_filter

from penstock.config.errors import ConfigError
from penstock.config.sizes import TIB
from penstock.distributed.groups import compute_device
from penstock.models.embeddings import narrow_tables
from penstock.optim.dense import RATE_SCALE
from penstock.optim.sparse import (
    STANDING_STILL,
    OptimizerInBackward,
    RowAdam,
    scaled_settings,
    table_parameters,
    use_row_adam,
    width_scale,
)
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
    model: nn.Module, sparse_optimizer: OptimizerInBackward | None, world: World
) -> DistributedModelParallel:
    """The model with its embedding tables divided among the ranks; a process group must be open.

    Each rank makes its part of the pooled tables again by their `init_fn`: values that `model` holds already
    are not carried over, so tables are best on the meta device until here, where they take no memory.
    `sparse_optimizer` (class and settings) updates the tables in the backward pass; frozen tables
    (`requires_grad` False) do not move. Without one (evaluation, prediction) backward must not be called.
    """
    device = compute_device(world)
    tables, true_widths = dict(table_parameters(model)), narrow_tables(model)
    scales: dict[str, float] = {}
    trainable = {name for name, table in tables.items() if table.requires_grad}
    optimizer_class, settings = sparse_optimizer or STANDING_STILL
    start = settings.get("initial_accumulator_value", 0.0)
    settings = {key: value for key, value in settings.items() if key != "initial_accumulator_value"}
    if sparse_optimizer is not None:
        for name, table in tables.items():
            # Without an optimizer a frozen table would be given torchrec's default one, and move; so it gets SGD with
            # a rate of 0. So do tables that are not torchrec's to move.
            is_moved = name in trainable and optimizer_class is not RowAdam
            in_backward, arguments = (optimizer_class, settings) if is_moved else STANDING_STILL
            # torchrec hangs its settings on the table's node in the gradient graph, and changes them.
            table.requires_grad_(True)
            table_name, stored_dim = name.split(".")[-2], table.shape[1]
            scale = width_scale(in_backward, true_widths.get(table_name, stored_dim), stored_dim)
            scales[table_name] = scale
            _apply_optimizer_in_backward(in_backward, [table], scaled_settings(arguments, scale))
    sharded = DistributedModelParallel(
        model,
        device=device,
        plan=plan_tables(model, world, device),
        sharders=get_default_sharders(),
        # One process has nobody to average gradients with.
        init_data_parallel=world.num_ranks > 1,
    )
    parts: list[KeyedOptimizer] = [sharded.fused_optimizer] if true_widths and scales else []
    while parts:
        part = parts.pop()
        if isinstance(part, CombinedOptimizer):
            parts += [inner for _, inner in part.optimizers]
        elif part.params:  # tables of other settings have another kernel, so that the first stands for all
            first = next(iter(part.params)).split(".")[-2]
            for group in part.param_groups:
                group[RATE_SCALE] = scales[first]
    if optimizer_class is RowAdam:
        use_row_adam(sharded, trainable, settings)
    if start:
        # The kernel itself starts the accumulators of Adagrad at 0. A frozen table has none.
        for state in sharded.fused_optimizer.state_dict()["state"].values():
            for part in (part for accumulator in state.values() for part in accumulator.local_shards()):
                part.tensor.fill_(start)
    return sharded


def plan_tables(model: nn.Module, world: World, device: torch.device) -> ShardingPlan:
    """Which rank holds which table. Every rank comes to the same plan by itself, or to the same error."""
    tables: list[BaseEmbeddingConfig] = []
    for module in model.modules():
        if isinstance(module, EmbeddingBagCollection):
            tables += module.embedding_bag_configs()
        elif isinstance(module, EmbeddingCollection):
            tables += module.embedding_configs()
    constraints = {
        table.name: ParameterConstraints(
            sharding_types=_SHARDING_TYPES[device.type],
            compute_kernels=[EmbeddingComputeKernel.FUSED.value],
            pooling_factors=[1.0] * len(table.feature_names),
        )
        for table in tables
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


def dense_parameters(model: DistributedModelParallel) -> dict[str, nn.Parameter]:
    """The parameters that an ordinary optimizer has to move: all but those that backward itself updates."""
    named = in_backward_optimizer_filter(model.named_parameters())
    return {name: parameter for name, parameter in named if parameter.requires_grad}
