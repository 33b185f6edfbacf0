"""Learning rates as pure functions of the steps or epochs that are completed.

Nothing here has a state: a resumed run asks for the rate of its step and gets the one it would have had.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import ConfigError
from penstock.config.load import parse_section
from penstock.config.section import Section
from penstock.optim.sections import (
    ConstantLR,
    DenseOptimizer,
    ExponentialDecayLR,
    ScheduleOptions,
    SparseOptimizer,
)

Formula = Callable[[float, int], float]
"""From the base rate and the number of completed steps (or epochs) to a rate."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A learning rate over a run."""

    base: float
    """The rate that the optimizer's section names."""

    formula: Formula
    by_epoch: bool = False
    """Whether the formula counts completed epochs instead of completed steps."""

    def value(self, step: int, epoch: int) -> float:
        """The rate after so many completed steps and epochs; a base of 0 stays 0."""
        return self.formula(self.base, epoch if self.by_epoch else step) if self.base else 0.0


def build_schedule(section: SparseOptimizer | DenseOptimizer) -> Schedule:
    """The schedule of an optimizer's section; constant when it names none."""
    optimizer = section.chosen("optimizer")
    if optimizer is None:
        raise ConfigError(f"{type(section).__name__}: no optimizer is chosen")
    _, options = section.chosen("learning_rate") or ("constant_learning_rate", ConstantLR())
    return schedule_of(options, optimizer[1].lr)


def preview_schedule(section: Section | Mapping[str, Any], lr: float, steps: int) -> list[float]:
    """The rates after 0, 1, ..., `steps` completed steps (or epochs, when the section counts them) on a base of `lr`.

    The section is a schedule's own, such as `ExponentialDecayLR`, or what a run file would say:

    >>> preview_schedule({"exponential_decay_learning_rate": {"decay_size": 1, "decay_factor": 0.5}}, 0.8, 3)
    [0.8, 0.4, 0.2, 0.1]
    """
    if isinstance(section, Mapping):
        chosen = parse_section(ScheduleOptions, json.dumps(section), "json").section.chosen("learning_rate")
        section = ConstantLR() if chosen is None else chosen[1]
    schedule = schedule_of(section, lr)
    return [schedule.value(completed, completed) for completed in range(steps + 1)]


def schedule_of(section: Section, lr: float) -> Schedule:
    """The schedule of its own section, on a base rate of `lr`."""
    build = SCHEDULES.get(type(section))
    if build is None:
        names = ", ".join(known.__name__ for known in SCHEDULES)
        raise ConfigError(f"the schedule {type(section).__name__} is not available yet; available: {names}")
    return Schedule(lr, build(section), getattr(section, "by_epoch", False))


def constant(_section: ConstantLR) -> Formula:
    """Always the base rate."""
    return lambda base, completed: base


def exponential_decay(section: ExponentialDecayLR) -> Formula:
    """base * decay_factor ^ (completed / decay_size), with staircase floored, never under the minimum."""
    size, factor, minimum = section.decay_size, section.decay_factor, section.min_learning_rate

    def rate(base: float, completed: int) -> float:
        exponent = completed // size if section.staircase else completed / size
        return max(base * math.pow(factor, exponent), minimum)

    return warmed_up(rate, section.warmup_learning_rate, section.warmup_size)


def warmed_up(formula: Formula, start: float, size: int) -> Formula:
    """A line from `start` to the base rate over `size` steps, then the formula, counting from there."""

    def rate(base: float, completed: int) -> float:
        if completed < size:
            return start + (base - start) * completed / size
        return formula(base, completed - size)

    return rate


SCHEDULES: dict[type[Section], Callable[[Any], Formula]] = {
    ConstantLR: constant,
    ExponentialDecayLR: exponential_decay,
}
"""The schedules of the run file, by their section."""
