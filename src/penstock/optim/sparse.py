"""Optimizers of embedding tables, fused into the backward pass."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torchrec.optim
from torch.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

from penstock.config.errors import ConfigError

if TYPE_CHECKING:
    from penstock.optim.sections import (
        FusedAdagradOptimizer,
        FusedRowWiseAdagradOptimizer,
        FusedSGDOptimizer,
        SparseOptimizer,
    )

FusedOptimizer = tuple[type[torch.optim.Optimizer], dict[str, Any]]
"""The class that torchrec translates to a kernel, and the kernel's settings."""

_PATH = "train_config.sparse_optimizer"


def sgd(section: "FusedSGDOptimizer") -> FusedOptimizer:
    """row -= lr * gradient."""
    return torchrec.optim.SGD, {"lr": section.lr, **_clipping(section)}


def adagrad(section: "FusedAdagradOptimizer") -> FusedOptimizer:
    """One accumulator for each number: row -= lr * gradient / (sqrt(sum of gradient^2) + 1e-8)."""
    if section.initial_accumulator_value:
        raise ConfigError.at(
            f"{_PATH}.adagrad_optimizer.initial_accumulator_value",
            f"is {section.initial_accumulator_value}; the fused kernel starts at 0; not available yet",
        )
    return torchrec.optim.Adagrad, {"lr": section.lr, **_clipping(section)}


def rowwise_adagrad(section: "FusedRowWiseAdagradOptimizer") -> FusedOptimizer:
    """One accumulator for each row, to which the mean of its squared gradients is added."""
    if section.weight_decay:
        raise ConfigError.at(
            f"{_PATH}.rowwise_adagrad_optimizer.weight_decay",
            f"is {section.weight_decay}; the CPU kernel ignores it in lookups without weights",
        )
    return torchrec.optim.RowWiseAdagrad, {"lr": section.lr, **_clipping(section)}


SPARSE_OPTIMIZERS: dict[str, Callable[[Any], FusedOptimizer]] = {
    "sgd_optimizer": sgd,
    "adagrad_optimizer": adagrad,
    "rowwise_adagrad_optimizer": rowwise_adagrad,
}
"""The fused optimizers that have a CPU kernel, by the name of their section."""


def sparse_optimizer(section: "SparseOptimizer") -> FusedOptimizer:
    """Class and settings of the optimizer that the run file chose for embedding tables.

    The settings are a new dictionary at every call: torchrec changes the one it is given.
    """
    chosen = section.chosen("optimizer")
    if chosen is None:
        raise ConfigError.at(_PATH, f"choose an optimizer: {', '.join(SPARSE_OPTIMIZERS)}")
    name, options = chosen
    if name not in SPARSE_OPTIMIZERS:
        raise ConfigError.at(
            f"{_PATH}.{name}",
            f"has no CPU kernel and is not available yet; available: {', '.join(SPARSE_OPTIMIZERS)}",
        )
    return SPARSE_OPTIMIZERS[name](options)


def table_parameters(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The embedding tables of a model that is not sharded yet, by parameter name."""
    for prefix, module in model.named_modules():
        if isinstance(module, EmbeddingBagCollection | EmbeddingCollection):
            yield from module.named_parameters(prefix)


def attach_sparse_optimizer(tables: Iterable[torch.nn.Parameter], optimizer: FusedOptimizer) -> None:
    """Tells torchrec, before it shards these tables, to update them in the backward pass.

    A table that needs no gradient is frozen: it gets SGD with a learning rate of 0, because a sharded table
    without an optimizer would be given torchrec's default one, and move.
    """
    optimizer_class, settings = optimizer
    for table in tables:
        if table.requires_grad:
            _apply_optimizer_in_backward(optimizer_class, [table], dict(settings))
        else:
            table.requires_grad_(
                True
            )  # torchrec hangs its settings on the table's place in the gradient graph
            _apply_optimizer_in_backward(torchrec.optim.SGD, [table], {"lr": 0.0})


def _clipping(section: Any) -> dict[str, Any]:
    """The kernel cuts each number of a gradient to [-max_gradient, max_gradient]."""
    if not section.gradient_clipping:
        return {}
    return {"gradient_clipping": True, "max_gradient": section.max_gradient}
