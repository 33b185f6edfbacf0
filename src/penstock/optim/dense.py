"""Optimizers of everything that is not an embedding table."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizer, KeyedOptimizerWrapper

from penstock.config.errors import ConfigError
from penstock.config.registry import make_part
from penstock.optim.parts import split_by_part
from penstock.optim.schedules import Schedule, build_schedule

if TYPE_CHECKING:
    from penstock.optim.sections.dense import (
        AdamOptions,
        CustomOptimizer,
        DenseOptimizer,
        DenseOptimizerOptions,
        DenseOptions,
    )

Factory = Callable[[Any], torch.optim.Optimizer]
"""From parameters to an optimizer over them."""

Scheduled = tuple[KeyedOptimizer, Schedule]
"""An optimizer and the schedule of its learning rate."""

_PATH = "train_config.dense_optimizer"


def keywords(
    optimizer: Callable[..., torch.optim.Optimizer], *names: str
) -> Callable[["DenseOptions"], Factory]:
    """From a section to the optimizer, told the rate, the weight decay and these fields of the section."""
    return lambda section: partial(optimizer, **_told(section, *names))


def moments(optimizer: Callable[..., torch.optim.Optimizer]) -> Callable[["AdamOptions"], Factory]:
    """The same for Adam, which is told both decays as one."""
    return lambda section: partial(
        optimizer, betas=(section.beta1, section.beta2), **_told(section, "eps", "amsgrad")
    )


def _told(section: "DenseOptions", *names: str) -> dict[str, Any]:
    return {name: getattr(section, name) for name in ("lr", "weight_decay", *names)}


def custom(section: "CustomOptimizer") -> Factory:
    """A class of one's own, called with parameters, lr and its options."""
    return lambda parameters: _usable(section, make_part("optimizer", section, parameters, lr=section.lr))


def _usable(section: "CustomOptimizer", made: object) -> torch.optim.Optimizer:
    if not isinstance(made, torch.optim.Optimizer):
        raise ConfigError(
            f"custom_optimizer '{section.place}': gives {type(made).__name__}, no torch.optim.Optimizer"
        )
    closure = inspect.signature(made.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ConfigError(
            f"custom_optimizer '{section.place}': its step needs a closure that computes the loss again, which there "
            "is not; choose an optimizer whose step is called alone"
        )
    return made


DENSE_OPTIMIZERS: dict[str, Callable[[Any], Factory]] = {
    "sgd_optimizer": keywords(torch.optim.SGD, "momentum", "dampening", "nesterov"),
    "adagrad_optimizer": keywords(torch.optim.Adagrad, "initial_accumulator_value", "eps"),
    "adam_optimizer": moments(torch.optim.Adam),
    "adamw_optimizer": moments(torch.optim.AdamW),
    "adadelta_optimizer": keywords(torch.optim.Adadelta, "rho", "eps"),
    "rmsprop_optimizer": keywords(torch.optim.RMSprop, "alpha", "eps"),
    "custom_optimizer": custom,
}
"""The dense optimizers of the run file, by the name of their section."""


def dense_optimizers(
    section: "DenseOptimizer", named_parameters: Iterable[tuple[str, torch.nn.Parameter]]
) -> dict[str, Scheduled]:
    """The optimizers of these parameters with their schedules: `dense`, and `dense_part_0`, ... for the parts.

    Each saves its state by parameter name. One that is left without parameters is left out.
    """
    rest, parts = split_by_part(section.part_optimizers, dict(named_parameters), f"{_PATH}.part_optimizers")
    places = [(_PATH, "dense", section, rest)] + [
        (f"{_PATH}.part_optimizers[{index}]", f"dense_part_{index}", part, parameters)
        for index, (part, parameters) in enumerate(zip(section.part_optimizers, parts, strict=True))
    ]
    return {
        name: (_optimizer(options, parameters, path), build_schedule(options))
        for path, name, options, parameters in places
        if parameters
    }


def combined(scheduled: Mapping[str, Scheduled]) -> KeyedOptimizer:
    """One optimizer for all of them, which steps, saves and restores them by parameter name."""
    return CombinedOptimizer([optimizer for optimizer, _ in scheduled.values()])


def dense_optimizer(
    section: "DenseOptimizer", named_parameters: Iterable[tuple[str, torch.nn.Parameter]]
) -> KeyedOptimizer:
    """The optimizer that the run file chose, parts included; its state is saved by parameter name."""
    return combined(dense_optimizers(section, named_parameters))


def _optimizer(
    section: "DenseOptimizerOptions", parameters: Mapping[str, torch.nn.Parameter], path: str
) -> KeyedOptimizer:
    chosen = section.chosen("optimizer")
    if chosen is None:
        raise ConfigError.at(path, f"choose an optimizer: {', '.join(DENSE_OPTIMIZERS)}")
    name, options = chosen
    try:
        return KeyedOptimizerWrapper(parameters, DENSE_OPTIMIZERS[name](options))
    except ConfigError as error:
        raise ConfigError.at(f"{path}.{name}", str(error)) from error
