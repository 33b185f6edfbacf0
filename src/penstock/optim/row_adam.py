"""Adam for embedding tables on CPU, where no fused kernel has it.

The tables stay with torchrec's kernel, which looks them up and, with plain SGD at a rate of 0, moves nothing. When the
backward pass reaches a lookup, the rows that it touched get their Adam update here; all other rows, and their moments,
stay as they are. Moments are divided by 1 - beta^step with the steps of the table, not of the row, as the GPU kernel
does it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torchrec.optim
from fbgemm_gpu.split_table_batched_embeddings_ops_training import SplitTableBatchedEmbeddingBagsCodegen
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.fused import FusedOptimizer
from torchrec.optim.keyed import CombinedOptimizer

from penstock.optim.row_gradients import Lookup
from penstock.optim.sharded_state import counter_of, local_part, zeros_beside
from penstock.optim.table_kernels import table_kernels

STANDING_STILL = (torchrec.optim.SGD, {"lr": 0.0})
"""What torchrec is told to do with tables that it shall not move."""

EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class RowAdamSettings:
    """What the run file says, by the names that fused kernels use."""

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 0.0
    gradient_clipping: bool = False
    """Cut each number of the gradient that reaches a lookup to [-max_gradient, max_gradient]."""

    max_gradient: float = 1.0


class RowAdam(FusedOptimizer):
    """Updates the rows that a lookup touched, in the backward pass; its state is sharded as its tables are."""

    def __init__(self, tables: Mapping[str, ShardedTensor], settings: RowAdamSettings) -> None:
        """`tables` by parameter name; this rank moves those of which it holds a shard."""
        self._settings = settings
        self._names = {name.split(".")[-2]: name for name in tables}
        state = {table: _fresh_state(table) for table in tables.values()}
        super().__init__(tables, state, [{"params": list(tables.values()), "lr": settings.lr}])

    def step(self, closure: Any = None) -> None:
        """Nothing is left to do: the backward pass has moved the rows."""

    def zero_grad(self, set_to_none: bool = False) -> None:
        """There are no gradients to forget."""

    def follow(self, kernel: SplitTableBatchedEmbeddingBagsCodegen, table_names: list[str]) -> None:
        """Update rows whenever the backward pass reaches a lookup of this kernel."""
        names = [self._names.get(table) for table in table_names]
        kernel.register_forward_hook(partial(self._after_lookup, names), with_kwargs=True)

    def _after_lookup(
        self,
        names: list[str | None],
        kernel: SplitTableBatchedEmbeddingBagsCodegen,
        _args: tuple[Any, ...],
        asked: dict[str, Any],
        embedded: torch.Tensor,
    ) -> None:
        if embedded.requires_grad:
            embedded.register_hook(  # type: ignore[no-untyped-call]
                partial(self._update, names, Lookup.of(kernel, **asked))
            )

    @torch.no_grad()
    def _update(self, names: list[str | None], lookup: Lookup, gradient: torch.Tensor) -> None:
        limit = self._settings.max_gradient
        if self._settings.gradient_clipping:
            gradient = gradient.clamp(-limit, limit)
        for table, rows, sums in lookup.row_gradients(gradient):
            name = names[table]
            if name is not None:
                self._move(self.params[name], rows, sums)

    def _move(self, table: ShardedTensor, rows: torch.Tensor, gradient: torch.Tensor) -> None:
        settings, [group] = self._settings, self.param_groups
        weights, mean, square, step = (
            local_part(tensor) for tensor in (table, *(self.state[table][key] for key in STATE))
        )
        step += 1
        count = int(step)
        mean_of_rows = mean[rows].lerp_(gradient, 1 - settings.beta1)
        square_of_rows = (
            square[rows].mul_(settings.beta2).addcmul_(gradient, gradient, value=1 - settings.beta2)
        )
        mean[rows], square[rows] = mean_of_rows, square_of_rows
        divisor = (square_of_rows / (1 - settings.beta2**count)).sqrt_().add_(EPSILON)
        old = weights[rows]
        direction = mean_of_rows.div_(1 - settings.beta1**count).div_(divisor)
        weights[rows] = old - group["lr"] * direction.add_(old, alpha=settings.weight_decay)


STATE = ("exp_avg", "exp_avg_sq", "step")
"""Running mean of the gradient, of its square, and how often the table was looked up in training."""


def use_row_adam(
    model: DistributedModelParallel, trainable: Collection[str], settings: RowAdamSettings
) -> None:
    """Let Adam move the tables with these parameter names in a model whose kernels stand still.

    It takes the place of the model's fused optimizer, so that whoever sets rates, saves and restores finds it there.
    """
    tables = {name: table for name, table in model.fused_optimizer.params.items() if name in trainable}
    adam = RowAdam(tables, settings)
    for kernel, table_names in table_kernels(model):
        adam.follow(kernel, table_names)
    model._optim = CombinedOptimizer([adam])


def _fresh_state(table: ShardedTensor) -> dict[str, ShardedTensor]:
    return {"exp_avg": zeros_beside(table), "exp_avg_sq": zeros_beside(table), "step": counter_of(table)}
