"""Optimizers of embedding tables, which update in the backward pass; and Adam on CPU, where no fused kernel has it.

For that Adam the tables stay with torchrec's kernel, which looks them up and, with plain SGD at a rate of 0, moves
nothing. When the backward pass reaches a lookup, the rows that it touched get their Adam update here; all other rows,
and their moments, stay as they are. Moments are divided by 1 - beta^step with the steps of the table, not of the row,
as the GPU kernel does it.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import torch
import torchrec.optim
from fbgemm_gpu.split_table_batched_embeddings_ops_common import PoolingMode
from fbgemm_gpu.split_table_batched_embeddings_ops_training import SplitTableBatchedEmbeddingBagsCodegen
from fbgemm_gpu.split_table_batched_embeddings_ops_training import WeightDecayMode as KernelDecayMode
from torch import nn
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata, TensorProperties
from torch.distributed._shard.sharded_tensor.shard import Shard
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.optim.fused import FusedOptimizer
from torchrec.optim.keyed import CombinedOptimizer

from penstock.config.errors import ConfigError
from penstock.optim.sections import SparseOptimizer

OptimizerInBackward = tuple[type[torch.optim.Optimizer], dict[str, Any]]
"""The class that torchrec translates to a kernel, or RowAdam; and its settings."""

STANDING_STILL = (torchrec.optim.SGD, {"lr": 0.0})
"""What torchrec gets for tables that it shall not move."""

EPSILON = 1e-8


def sparse_optimizer(section: SparseOptimizer, device_type: str = "cpu") -> OptimizerInBackward:
    """Class and settings of the optimizer that the run file chose for embedding tables.

    Of the settings `initial_accumulator_value` is not for the kernel, which starts accumulators at 0.
    """
    problems = list(section.problems(device_type))
    chosen = section.chosen("optimizer")
    if problems or chosen is None:
        raise ConfigError(problems)
    options = chosen[1]
    settings = {"lr": options.lr, **options.kernel_settings()}
    if "weight_decay_mode" in settings:
        settings["weight_decay_mode"] = KernelDecayMode[settings["weight_decay_mode"].name]
    if options.gradient_clipping:  # of each number of a gradient, to [-max_gradient, max_gradient]
        settings |= {"gradient_clipping": True, "max_gradient": options.max_gradient}
    if start := getattr(options, "initial_accumulator_value", 0.0):
        settings["initial_accumulator_value"] = start
    is_row_adam = options.kernel == "Adam" and device_type == "cpu"
    return RowAdam if is_row_adam else getattr(torchrec.optim, options.kernel), settings


def width_scale(optimizer: type[torch.optim.Optimizer], true_dim: int, stored_dim: int) -> float:
    """What rate and epsilon are multiplied by, so that zeros behind the true width of rows change nothing.

    Where an optimizer takes the mean of squares over a row, these zeros make it smaller.
    """
    takes_means = optimizer in (torchrec.optim.RowWiseAdagrad, torchrec.optim.PartialRowWiseAdam)
    return math.sqrt(true_dim / stored_dim) if takes_means else 1.0


def scaled_settings(settings: Mapping[str, Any], scale: float) -> dict[str, Any]:
    if scale == 1:
        return dict(settings)
    scaled = {**settings, "lr": settings["lr"] * scale, "eps": settings.get("eps", EPSILON) * scale}
    if settings.get("weight_decay_mode") is KernelDecayMode.DECOUPLE:  # it is multiplied by the rate
        scaled["weight_decay"] = settings["weight_decay"] / scale
    return scaled


def table_parameters(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The embedding tables of a model that is not sharded yet, by parameter name."""
    for prefix, module in model.named_modules():
        if isinstance(module, EmbeddingBagCollection | EmbeddingCollection):
            yield from module.named_parameters(prefix)


def row_gradients(
    kernel: SplitTableBatchedEmbeddingBagsCodegen,
    gradient: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    per_sample_weights: torch.Tensor | None = None,
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """For each table its distinct ids, and the sum of their gradients; a table without ids gives none of both.

    `indices` are the ids of one batch, for all features (F) of a kernel and all rows (B); `offsets` says where the bag
    of each row of each feature begins in them, and at last where all end.
    """
    tables: list[int] = kernel.feature_table_map
    num_rows = (offsets.numel() - 1) // len(tables)
    bounds = offsets[::num_rows].tolist() if num_rows else [0] * (len(tables) + 1)
    lengths_FB = offsets.diff().view(len(tables), num_rows)
    found: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
    column = 0
    for feature, table in enumerate(tables):
        values, width = slice(bounds[feature], bounds[feature + 1]), kernel.embedding_specs[table][1]
        if kernel.pooling_mode is PoolingMode.NONE:
            spread = gradient[values]
        else:
            # From the gradient of each bag to that of each of its values.
            of_bags, lengths_B = gradient[:, column : column + width], lengths_FB[feature]
            if kernel.pooling_mode is PoolingMode.MEAN:
                of_bags = of_bags / lengths_B.clamp(min=1).unsqueeze(1)
            spread = of_bags.index_select(0, torch.repeat_interleave(lengths_B))
            if per_sample_weights is not None:
                spread = spread * per_sample_weights[values].unsqueeze(1)
        column += width
        found.setdefault(table, []).append((indices[values], spread))
    for table, pieces in found.items():
        gradients = torch.cat([of_ids for _, of_ids in pieces])
        rows, which = torch.unique(torch.cat([ids for ids, _ in pieces]), return_inverse=True)
        sums = gradients.new_zeros(rows.numel(), gradients.shape[1])
        yield table, rows, sums.index_add_(0, which, gradients)


STATE = ("exp_avg", "exp_avg_sq", "step")
"""Running mean of the gradient, of its square, and how often the table was looked up in training."""


def _fresh_state(table: ShardedTensor) -> dict[str, ShardedTensor]:
    """Sharded as the table is: moments for each of its numbers, and one count for each of its shards."""
    shards, size = list(table.metadata().shards_metadata), table.metadata().size
    counts = [ShardMetadata([index], [1], shard.placement) for index, shard in enumerate(shards)]
    return {
        "exp_avg": _sharded_zeros(table, shards, size, torch.float32),
        "exp_avg_sq": _sharded_zeros(table, shards, size, torch.float32),
        "step": _sharded_zeros(table, counts, torch.Size([len(shards)]), torch.int64),
    }


def _sharded_zeros(
    table: ShardedTensor, shards: list[ShardMetadata], size: torch.Size, dtype: torch.dtype
) -> ShardedTensor:
    held = {tuple(shard.metadata.shard_offsets): shard.tensor.device for shard in table.local_shards()}
    local = [
        Shard(torch.zeros(shard.shard_sizes, dtype=dtype, device=held[tuple(beside.shard_offsets)]), shard)
        for shard, beside in zip(shards, table.metadata().shards_metadata, strict=True)
        if tuple(beside.shard_offsets) in held
    ]
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        local,
        ShardedTensorMetadata(shards, size, TensorProperties(dtype=dtype)),
        process_group=table._process_group,
    )


def table_kernels(model: nn.Module) -> Iterator[tuple[SplitTableBatchedEmbeddingBagsCodegen, list[str]]]:
    """The kernels of all sharded collections with the names of their tables; torchrec does not list them as modules."""
    for module in model.modules():
        for lookup in getattr(module, "_lookups", ()):
            for kernel in getattr(lookup, "module", lookup)._emb_modules:
                yield kernel.emb_module, [table.name for table in kernel.config.embedding_tables]


class RowAdam(FusedOptimizer):
    """Updates the rows that a lookup touched, in the backward pass; its state is sharded as its tables are."""

    def __init__(
        self,
        tables: Mapping[str, ShardedTensor],
        lr: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        weight_decay: float = 0.0,
        gradient_clipping: bool = False,
        max_gradient: float = 1.0,
    ) -> None:
        """`tables` by parameter name; this rank moves those of which it holds a shard.

        `gradient_clipping` cuts each number of the gradient that reaches a lookup to [-max_gradient, max_gradient].
        """
        self._betas, self._weight_decay = (beta1, beta2), weight_decay
        self._max_gradient = max_gradient if gradient_clipping else None
        self._names = {name.split(".")[-2]: name for name in tables}
        state = {table: _fresh_state(table) for table in tables.values()}
        super().__init__(tables, state, [{"params": list(tables.values()), "lr": lr}])

    def step(self, closure: Any = None) -> None:
        """Nothing is left to do: the backward pass has moved the rows."""

    def zero_grad(self, set_to_none: bool = False) -> None:
        """There are no gradients to forget."""

    def follow(self, kernel: SplitTableBatchedEmbeddingBagsCodegen, table_names: list[str]) -> None:
        """Update rows whenever the backward pass reaches a lookup of this kernel."""
        names = [self._names.get(table) for table in table_names]

        def after_lookup(
            _kernel: nn.Module, _args: tuple[Any, ...], asked: dict[str, Any], embedded: torch.Tensor
        ) -> None:
            if embedded.requires_grad:
                update = partial(self._update, kernel, names, asked)
                embedded.register_hook(update)  # type: ignore[no-untyped-call]

        kernel.register_forward_hook(after_lookup, with_kwargs=True)

    @torch.no_grad()
    def _update(
        self,
        kernel: SplitTableBatchedEmbeddingBagsCodegen,
        names: list[str | None],
        asked: dict[str, Any],
        gradient: torch.Tensor,
    ) -> None:
        if self._max_gradient is not None:
            gradient = gradient.clamp(-self._max_gradient, self._max_gradient)
        for table, rows, sums in row_gradients(kernel, gradient, **asked):
            name = names[table]
            if name is not None:
                self._move(self.params[name], rows, sums)

    def _move(self, table: ShardedTensor, rows: torch.Tensor, gradient: torch.Tensor) -> None:
        (beta1, beta2), [group] = self._betas, self.param_groups
        # The one shard of each on this rank, apart from the autograd history of the kernel that owns it.
        weights, mean, square, step = (
            tensor.local_shards()[0].tensor.data
            for tensor in (table, *(self.state[table][key] for key in STATE))
        )
        step += 1
        count = int(step)
        mean_of_rows = mean[rows].lerp_(gradient, 1 - beta1)
        square_of_rows = square[rows].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        mean[rows], square[rows] = mean_of_rows, square_of_rows
        divisor = (square_of_rows / (1 - beta2**count)).sqrt_().add_(EPSILON)
        old = weights[rows].float()  # of tables in float16 too
        direction = mean_of_rows.div_(1 - beta1**count).div_(divisor)
        new = old - group["lr"] * direction.add_(old, alpha=self._weight_decay)
        weights[rows] = new.to(weights.dtype)


def use_row_adam(
    model: DistributedModelParallel, trainable: Collection[str], settings: Mapping[str, Any]
) -> None:
    """Let Adam move the tables with these parameter names in a model whose kernels stand still.

    It replaces the model's fused optimizer, so that whoever sets rates, saves and restores finds it there.
    """
    tables = {name: table for name, table in model.fused_optimizer.params.items() if name in trainable}
    adam = RowAdam(tables, **settings)
    for kernel, table_names in table_kernels(model):
        adam.follow(kernel, table_names)
    model._optim = CombinedOptimizer([adam])
