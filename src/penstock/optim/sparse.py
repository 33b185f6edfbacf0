"""Optimizers of embedding tables, which update in the backward pass."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torchrec.optim
from fbgemm_gpu.split_table_batched_embeddings_ops_training import WeightDecayMode as KernelDecayMode
from torch.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.optim.keyed import KeyedOptimizer

from penstock.config.errors import ConfigError
from penstock.optim.row_adam import STANDING_STILL, RowAdam
from penstock.optim.sections import SparseOptimizer

FusedOptimizer = tuple[type[torch.optim.Optimizer], dict[str, Any]]
"""The class that torchrec translates to a kernel, or RowAdam; and its settings."""


def sparse_optimizer(section: SparseOptimizer, device_type: str = "cpu") -> FusedOptimizer:
    """Class and settings of the optimizer that the run file chose for embedding tables.

    The settings are a new dictionary at every call: torchrec changes the one it is given.
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
    is_row_adam = options.kernel == "Adam" and device_type == "cpu"
    return RowAdam if is_row_adam else getattr(torchrec.optim, options.kernel), settings


def table_parameters(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The embedding tables of a model that is not sharded yet, by parameter name."""
    for prefix, module in model.named_modules():
        if isinstance(module, EmbeddingBagCollection | EmbeddingCollection):
            yield from module.named_parameters(prefix)


def attach_sparse_optimizer(tables: Iterable[torch.nn.Parameter], optimizer: FusedOptimizer) -> None:
    """Tells torchrec, before it shards these tables, to update them in the backward pass.

    A table that needs no gradient is frozen: it gets SGD with a learning rate of 0, because a sharded table
    without an optimizer would be given torchrec's default one, and move. So do tables that are not torchrec's to
    move (`row_adam`).
    """
    for table in tables:
        optimizer_class, settings = (
            optimizer if table.requires_grad and optimizer[0] is not RowAdam else STANDING_STILL
        )
        # torchrec hangs its settings on the table's node in the gradient graph.
        table.requires_grad_(True)
        _apply_optimizer_in_backward(optimizer_class, [table], dict(settings))


def start_accumulators(section: SparseOptimizer, optimizer: KeyedOptimizer) -> None:
    """Start the accumulators of Adagrad where the run file says; the kernel itself starts them at 0.

    `optimizer` is that of the sharded tables. A frozen table has no accumulators.
    """
    chosen = section.chosen("optimizer")
    start = getattr(chosen[1], "initial_accumulator_value", 0.0) if chosen is not None else 0.0
    if not start:
        return
    for state in optimizer.state_dict()["state"].values():
        for accumulator in state.values():
            for shard in accumulator.local_shards():
                shard.tensor.fill_(start)
