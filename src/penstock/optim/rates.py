"""Brings a learning rate to an optimizer, dense or fused, so that the very next step uses it."""

import torch
from torchrec.optim.fused import FusedOptimizer
from torchrec.optim.keyed import CombinedOptimizer

from penstock.config.errors import ConfigError
from penstock.optim.sections.numbers import refuse_unusable_rate


def set_learning_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    """Use this learning rate from the next step on; what started with a rate of 0 (a frozen table) keeps it.

    A fused optimizer hands its rate to the kernel only in `step()`, and the kernel updates in the backward
    pass before that; so its `step()`, which does nothing else, is called here.
    """
    for group in optimizer.param_groups:
        try:
            refuse_unusable_rate(value, group.get("betas", (0.0,))[0])
        except ValueError as error:
            raise ConfigError(f"a learning rate cannot be used: {error}") from error
        if group.setdefault("initial_lr", group["lr"]) != 0:
            group["lr"] = value
    if is_fused(optimizer):
        optimizer.step()


def is_fused(optimizer: torch.optim.Optimizer) -> bool:
    """Whether all updates of this optimizer happen in the backward pass, so that step() moves nothing."""
    if isinstance(optimizer, CombinedOptimizer):
        return all(is_fused(part) for _, part in optimizer.optimizers)
    return isinstance(optimizer, FusedOptimizer)
