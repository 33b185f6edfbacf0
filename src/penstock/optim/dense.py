"""Optimizers of everything that is not an embedding table, also by part, and running means of what they move.

Learning rates, also those of tables, are in force at the next step.
"""

import difflib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
_NUM_UPDATES = "num_updates"


def _custom(section: CustomOptimizer, path: str, parameters: Any) -> torch.optim.Optimizer:
    """A custom class, called with parameters, lr and its options; `path` is that of its section."""
    try:
        made = make_part("optimizer", section, parameters, lr=section.lr)
    except ConfigError as error:
        raise ConfigError.at(path, str(error)) from error
    if not isinstance(made, torch.optim.Optimizer):
        message = f"gives {type(made).__name__}, no torch.optim.Optimizer"
        raise ConfigError.at(path, f"custom_optimizer '{section.import_path}': {message}")
    closure = inspect.signature(made.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ConfigError.at(
            path,
            f"custom_optimizer '{section.import_path}': its step needs a closure that computes the loss again, "
            "which there is not; choose an optimizer whose step is called alone",
        )
    return made


def dense_optimizers(
    section: DenseOptimizer, named_parameters: Iterable[tuple[str, torch.nn.Parameter]]
) -> tuple[KeyedOptimizer, dict[str, Scheduled]]:
    """One optimizer for all these parameters, and those it is made of: `dense`, and `dense_part_0`, ... for the parts.

    It steps, saves and restores them by parameter name. A parameter belongs to the first part whose pattern matches its
    whole name. Parts that take nothing would change nothing: an error, all of them at once.
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
    owners: list[tuple[str, str, DenseOptimizerOptions]] = [("dense", _PATH, section)]
    owners += [(f"dense_part_{i}", f"{_PATH}.part_optimizers[{i}]", part) for i, part in enumerate(parts)]
    scheduled: dict[str, Scheduled] = {}
    for (name, path, own), parameters in zip(owners, [taken[-1], *taken[:-1]], strict=True):
        if not parameters:
            continue
        chosen = own.chosen("optimizer")
        if chosen is None:
            raise ConfigError.at(path, f"choose an optimizer: {', '.join(own.one_of['optimizer'])}")
        kind, options = chosen
        if isinstance(options, CustomOptimizer):
            factory = partial(_custom, options, f"{path}.{kind}")
        else:
            factory = partial(getattr(torch.optim, options.torch_class), **options.arguments())
        scheduled[name] = (KeyedOptimizerWrapper(parameters, factory), build_schedule(own))
    return CombinedOptimizer([optimizer for optimizer, _ in scheduled.values()]), scheduled


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


RATE_SCALE = "rate_scale"
"""Key of a group of parameters whose rate is the scheduled one times this."""


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
            group["lr"] = value * group.get(RATE_SCALE, 1.0)
    parts: list[torch.optim.Optimizer] = [optimizer]
    while parts:
        part = parts.pop()
        if isinstance(part, CombinedOptimizer):
            parts += [inner for _, inner in part.optimizers]
        elif isinstance(part, FusedOptimizer):
            part.step()


class DenseAverages:
    """mean = decay * mean + (1 - decay) * parameter after every step; it starts as the parameters after the first.

    Embedding tables are left out: most of their rows do not move in a step. So are the running statistics of batch
    normalisation, which are means already.
    """

    def __init__(self, parameters: Mapping[str, torch.nn.Parameter], decay: float = 0.999) -> None:
        self._parameters: list[torch.Tensor] = list(parameters.values())
        self._decay = decay
        self._means = [parameter.detach().clone() for parameter in self._parameters]
        self._count = torch.zeros((), dtype=torch.int64)
        self._names = list(parameters)

    @torch.no_grad()
    def update(self) -> None:
        if self._parameters:
            share = 1 - self._decay if self._count else 1.0
            torch._foreach_lerp_(self._means, self._parameters, share)
        self._count += 1

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the parameters hold their means; before the first step there are none, and nothing changes."""
        if not self._count or not self._parameters:
            yield
            return
        kept = [parameter.detach().clone() for parameter in self._parameters]
        with torch.no_grad():
            torch._foreach_copy_(self._parameters, self._means)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self._parameters, kept)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The means by parameter name and the count of updates: the tensors in use, not copies."""
        return {**dict(zip(self._names, self._means, strict=True)), _NUM_UPDATES: self._count}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])
