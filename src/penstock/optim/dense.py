"""Optimizers of everything that is not an embedding table."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torchrec.optim.keyed import KeyedOptimizerWrapper

from penstock.config.errors import ConfigError

if TYPE_CHECKING:
    from penstock.optim.sections import AdagradOptimizer, AdamOptimizer, DenseOptimizer, SGDOptimizer

Factory = Callable[[Any], torch.optim.Optimizer]
"""From parameters to an optimizer over them."""

_PATH = "train_config.dense_optimizer"


def sgd(section: "SGDOptimizer") -> Factory:
    """Gradient descent with momentum."""
    return partial(
        torch.optim.SGD,
        lr=section.lr,
        momentum=section.momentum,
        dampening=section.dampening,
        nesterov=section.nesterov,
        weight_decay=section.weight_decay,
    )


def adagrad(section: "AdagradOptimizer") -> Factory:
    """Each parameter's rate shrinks with the gradients it has seen."""
    return partial(
        torch.optim.Adagrad,
        lr=section.lr,
        weight_decay=section.weight_decay,
        initial_accumulator_value=section.initial_accumulator_value,
        eps=section.eps,
    )


def adam(section: "AdamOptimizer") -> Factory:
    """Running means of the gradient and of its square."""
    return partial(
        torch.optim.Adam,
        lr=section.lr,
        betas=(section.beta1, section.beta2),
        eps=section.eps,
        weight_decay=section.weight_decay,
        amsgrad=section.amsgrad,
    )


DENSE_OPTIMIZERS: dict[str, Callable[[Any], Factory]] = {
    "sgd_optimizer": sgd,
    "adagrad_optimizer": adagrad,
    "adam_optimizer": adam,
}
"""The dense optimizers of the run file, by the name of their section."""


def dense_optimizer(
    section: "DenseOptimizer", named_parameters: Iterable[tuple[str, torch.nn.Parameter]]
) -> torch.optim.Optimizer:
    """The optimizer that the run file chose, over these parameters; its state is saved by parameter name."""
    for later in ("part_optimizers", "ema"):
        if getattr(section, later, None):
            raise ConfigError.at(f"{_PATH}.{later}", "not available yet")
    chosen = section.chosen("optimizer")
    if chosen is None or chosen[0] not in DENSE_OPTIMIZERS:
        path, problem = (
            (_PATH, "choose an optimizer")
            if chosen is None
            else (f"{_PATH}.{chosen[0]}", "not available yet")
        )
        raise ConfigError.at(path, f"{problem}; available: {', '.join(DENSE_OPTIMIZERS)}")
    name, options = chosen
    optimizer: torch.optim.Optimizer = KeyedOptimizerWrapper(
        dict(named_parameters), DENSE_OPTIMIZERS[name](options)
    )
    return optimizer
