"""Optimizers of embedding tables, which update in the backward pass."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torchrec.optim
from fbgemm_gpu.split_table_batched_embeddings_ops_training import WeightDecayMode as KernelDecayMode
from torch.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.optim.keyed import KeyedOptimizer

from penstock.config.errors import ConfigError
from penstock.optim.kernels import sparse_problems
from penstock.optim.row_adam import STANDING_STILL, RowAdam

if TYPE_CHECKING:
    from penstock.optim.sections.sparse import FusedRowWiseAdagradOptimizer, SparseOptimizer

FusedOptimizer = tuple[type[torch.optim.Optimizer], dict[str, Any]]
"""The class that torchrec translates to a kernel, or RowAdam; and its settings."""


def rowwise_adagrad_settings(section: "FusedRowWiseAdagradOptimizer") -> dict[str, Any]:
    """Weight decay is told to the kernel only where there is some."""
    if not section.weight_decay:
        return {}
    mode = KernelDecayMode[section.weight_decay_mode.name]
    return {"weight_decay": section.weight_decay, "weight_decay_mode": mode}


def moment_settings(section: Any) -> dict[str, Any]:
    """Adam and LAMB, also those with one second moment for each row."""
    return {"beta1": section.beta1, "beta2": section.beta2, "weight_decay": section.weight_decay}


SPARSE_OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], Callable[[Any], dict[str, Any]]]] = {
    "sgd_optimizer": (torchrec.optim.SGD, lambda section: {}),
    "adagrad_optimizer": (torchrec.optim.Adagrad, lambda section: {}),
    "rowwise_adagrad_optimizer": (torchrec.optim.RowWiseAdagrad, rowwise_adagrad_settings),
    "adam_optimizer": (torchrec.optim.Adam, moment_settings),
    "partial_rowwise_adam_optimizer": (torchrec.optim.PartialRowWiseAdam, moment_settings),
    "lamb_optimizer": (torchrec.optim.LAMB, moment_settings),
    "partial_rowwise_lamb_optimizer": (torchrec.optim.PartialRowWiseLAMB, moment_settings),
    "lars_sgd_optimizer": (
        torchrec.optim.LarsSGD,
        lambda section: {"momentum": section.momentum, "weight_decay": section.weight_decay},
    ),
}
"""Class and settings, beside rate and clipping, by the name of the section."""


def sparse_optimizer(section: "SparseOptimizer", device_type: str = "cpu") -> FusedOptimizer:
    """Class and settings of the optimizer that the run file chose for embedding tables.

    The settings are a new dictionary at every call: torchrec changes the one it is given.
    """
    problems = list(sparse_problems(section, device_type))
    chosen = section.chosen("optimizer")
    if problems or chosen is None:
        raise ConfigError(problems)
    name, options = chosen
    optimizer_class, settings_of = SPARSE_OPTIMIZERS[name]
    if name == "adam_optimizer" and device_type == "cpu":
        optimizer_class = RowAdam
    return optimizer_class, {"lr": options.lr, **settings_of(options), **_clipping(options)}


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
        # torchrec hangs its settings on the table's place in the gradient graph.
        table.requires_grad_(True)
        _apply_optimizer_in_backward(optimizer_class, [table], dict(settings))


def start_accumulators(section: "SparseOptimizer", optimizer: KeyedOptimizer) -> None:
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


def _clipping(section: Any) -> dict[str, Any]:
    """Each number of a gradient is cut to [-max_gradient, max_gradient]."""
    if not section.gradient_clipping:
        return {}
    return {"gradient_clipping": True, "max_gradient": section.max_gradient}
