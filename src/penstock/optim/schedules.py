"""Learning rates over a run: pure functions of the steps or epochs that are completed.

None but reduce-on-plateau (`plateau`) has a state: a resumed run asks for the rate of its step and gets the one it
would have had.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.config.errors import ConfigError
from penstock.config.load import parse_section
from penstock.config.section import Section
from penstock.optim.formulas import (
    Formula,
    constant,
    cosine_annealing,
    cosine_warm_restarts,
    custom,
    exponential_decay,
    manual_step,
)
from penstock.optim.plateau import PlateauSchedule
from penstock.optim.sections.dense import DenseOptimizerOptions
from penstock.optim.sections.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestartsLR,
    CustomLR,
    ExponentialDecayLR,
    ManualStepLR,
    ReduceOnPlateauLR,
    ScheduleOptions,
    minimum_problem,
)
from penstock.optim.sections.sparse import SparseOptimizer


class Schedule(Protocol):
    """A learning rate over a run."""

    def value(self, step: int, epoch: int) -> float:
        """The rate after so many completed steps and epochs."""
        ...


@dataclass(frozen=True, slots=True)
class FormulaSchedule:
    """A learning rate that depends on nothing but the place in the run."""

    base: float
    """The rate that the optimizer's section names."""

    formula: Formula
    by_epoch: bool = False
    """Whether the formula counts completed epochs instead of completed steps."""

    def value(self, step: int, epoch: int) -> float:
        """The rate after so many completed steps and epochs; a base of 0 stays 0."""
        return self.formula(self.base, epoch if self.by_epoch else step) if self.base else 0.0


def build_schedule(section: SparseOptimizer | DenseOptimizerOptions) -> Schedule:
    """The schedule of an optimizer's section; constant when it names none."""
    optimizer = section.chosen("optimizer")
    if optimizer is None:
        raise ConfigError(f"{type(section).__name__}: no optimizer is chosen")
    _, options = section.chosen("learning_rate") or ("constant_learning_rate", ConstantLR())
    return schedule_of(options, optimizer[1].lr)


def preview_schedule(section: Section | Mapping[str, Any], lr: float, steps: int) -> list[float]:
    """The rates after 0, 1, ..., `steps` completed steps (or epochs, when the section counts them) on a base of `lr`.

    Reduce-on-plateau moves by evaluations alone, so that its preview is the base rate. The section is a schedule's
    own, such as `ExponentialDecayLR`, or what a run file would say:

    >>> preview_schedule({"exponential_decay_learning_rate": {"decay_size": 1, "decay_factor": 0.5}}, 0.8, 3)
    [0.8, 0.4, 0.2, 0.1]
    """
    _require_preview(lr, steps)
    if isinstance(section, Mapping):
        chosen = parse_section(ScheduleOptions, json.dumps(section), "json").section.chosen("learning_rate")
        section = ConstantLR() if chosen is None else chosen[1]
    schedule = schedule_of(section, lr)
    return [schedule.value(completed, completed) for completed in range(steps + 1)]


def _require_preview(lr: object, steps: object) -> None:
    is_rate = isinstance(lr, int | float) and math.isfinite(lr) and lr >= 0
    if not is_rate or not isinstance(steps, int) or steps < 0:
        raise ConfigError(
            f"preview_schedule: lr {lr!r}, steps {steps!r}: a rate is a number from 0 on, and steps are a whole one"
        )


def schedule_of(section: Section, lr: float) -> Schedule:
    """The schedule of its own section, on a base rate of `lr`."""
    problem = minimum_problem(section, lr)
    if problem is not None:
        raise ConfigError.at(f"{type(section).__name__}.min_learning_rate", problem)
    if isinstance(section, ReduceOnPlateauLR):
        return PlateauSchedule(section, lr)
    build = FORMULAS.get(type(section))
    if build is None:
        known: list[type[Section]] = [*FORMULAS, ReduceOnPlateauLR]
        names = ", ".join(each.__name__ for each in known)
        raise ConfigError(f"{type(section).__name__} is not the section of a schedule; known: {names}")
    return FormulaSchedule(lr, build(section), getattr(section, "by_epoch", False))


FORMULAS: dict[type[Section], Callable[[Any], Formula]] = {
    ConstantLR: constant,
    ExponentialDecayLR: exponential_decay,
    ManualStepLR: manual_step,
    CosineAnnealingLR: cosine_annealing,
    CosineAnnealingWarmRestartsLR: cosine_warm_restarts,
    CustomLR: custom,
}
"""The schedules of the run file that are formulas, by their section."""
