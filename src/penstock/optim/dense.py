"""Optimizers of everything that is not an embedding table, also by part; learning rates in force at the next step."""

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torchrec.optim.fused import FusedOptimizer
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizer, KeyedOptimizerWrapper

from penstock.config.errors import ConfigError, Problem
from penstock.config.registry import make_part
from penstock.optim.schedules import Schedule, build_schedule
from penstock.optim.sections import CustomOptimizer, DenseOptimizer, DenseOptimizerOptions
from penstock.optim.sections.schedules import refuse_unusable_rate

Scheduled = tuple[KeyedOptimizer, Schedule]
"""An optimizer and the schedule of its learning rate."""

_PATH = "train_config.dense_optimizer"


def _custom(section: CustomOptimizer, parameters: Any) -> torch.optim.Optimizer:
    """A custom class, called with parameters, lr and its options."""
    made = make_part("optimizer", section, parameters, lr=section.lr)
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


def dense_optimizers(
    section: DenseOptimizer, named_parameters: Iterable[tuple[str, torch.nn.Parameter]]
) -> dict[str, Scheduled]:
    """The optimizers of these parameters with their schedules: `dense`, and `dense_part_0`, ... for the parts.

    Each saves its state by parameter name. A parameter belongs to the first part whose pattern matches its whole name.
    Parts that take nothing would change nothing: an error, all of them at once.
    """
    named, parts = dict(named_parameters), section.part_optimizers
    taken: list[dict[str, torch.nn.Parameter]] = [{} for _ in [*parts, section]]
    for name, parameter in named.items():
        owner = next((i for i, part in enumerate(parts) if re.fullmatch(part.regex_pattern, name)), -1)
        taken[owner][name] = parameter
    problems = [
        Problem(f"{_PATH}.part_optimizers[{i}].regex_pattern", _why_empty(part.regex_pattern, named))
        for i, part in enumerate(parts)
        if not taken[i]
    ]
    if problems:
        raise ConfigError(problems)
    scheduled = (
        {"dense": (_optimizer(section, taken[-1], _PATH), build_schedule(section))} if taken[-1] else {}
    )
    for i, part in enumerate(parts):
        optimizer = _optimizer(part, taken[i], f"{_PATH}.part_optimizers[{i}]")
        scheduled[f"dense_part_{i}"] = (optimizer, build_schedule(part))
    return scheduled


def combined(scheduled: Mapping[str, Scheduled]) -> KeyedOptimizer:
    """One optimizer for all of them, which steps, saves and restores them by parameter name."""
    return CombinedOptimizer([optimizer for optimizer, _ in scheduled.values()])


def _optimizer(
    section: DenseOptimizerOptions, parameters: Mapping[str, torch.nn.Parameter], path: str
) -> KeyedOptimizer:
    chosen = section.chosen("optimizer")
    if chosen is None:
        raise ConfigError.at(path, f"choose an optimizer: {', '.join(section.one_of['optimizer'])}")
    name, options = chosen
    factory: Callable[[Any], torch.optim.Optimizer]
    if isinstance(options, CustomOptimizer):
        factory = partial(_custom, options)
    else:
        factory = partial(getattr(torch.optim, options.torch_class), **options.arguments())
    try:
        return KeyedOptimizerWrapper(parameters, factory)
    except ConfigError as error:
        raise ConfigError.at(f"{path}.{name}", str(error)) from error


def _why_empty(pattern: str, named: Mapping[str, object]) -> str:
    matching = [name for name in named if re.fullmatch(pattern, name)]
    if matching:
        return f"'{pattern}' matches only what earlier parts have taken, such as {matching[0]}; put it before them"
    inside = [name for name in named if re.search(pattern, name)]
    if inside:
        core = pattern.removeprefix("^").removesuffix("$").removeprefix(".*").removesuffix(".*")
        wide = f".*({core}).*" if "|" in core else f".*{core}.*"
        return f"'{pattern}' matches only a piece of {inside[0]}; it must match the whole name: use '{wide}'"
    near = difflib.get_close_matches(re.sub(r"[^\w.]", "", pattern), named, n=3, cutoff=0.0)
    tables = "; embedding tables follow sparse_optimizer" if "emb" in pattern else ""
    return f"'{pattern}' matches no parameter; near names: {', '.join(near) or 'none'}{tables}"


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
