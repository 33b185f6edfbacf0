"""Learning rates over a run: pure functions of the steps or epochs that are completed.

None but reduce-on-plateau has a state: a resumed run asks for the rate of its step and gets the one it would have had.
"""

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from penstock.config.errors import CheckpointError, ConfigError
from penstock.config.load import parse_section
from penstock.config.registry import error_text, make_part, require_call
from penstock.config.section import Section
from penstock.optim.sections.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestartsLR,
    CustomLR,
    ExponentialDecayLR,
    ManualStepLR,
    MetricMode,
    ReduceOnPlateauLR,
    ScheduleOptions,
    rate_problems,
)

Formula = Callable[[float, int], float]
"""From the base rate and the number of completed steps (or epochs), those of the warm-up apart, to a rate."""


def exponential_decay(section: ExponentialDecayLR, base: float, completed: int) -> float:
    """base * decay_factor ^ (completed / decay_size), with staircase floored, never under the minimum."""
    exponent = completed // section.decay_size if section.staircase else completed / section.decay_size
    return max(base * math.pow(section.decay_factor, exponent), section.min_learning_rate)


def manual_step(section: ManualStepLR, base: float, completed: int) -> float:
    """The rate of the last size that is passed; before the first the base, or a line from it to the first rate."""
    sizes, rates = section.schedule_sizes, section.learning_rates
    if num_passed := bisect_left(sizes, completed):
        return rates[num_passed - 1]
    return base + (rates[0] - base) * completed / sizes[0] if section.warmup else base


def cosine_annealing(section: CosineAnnealingLR, base: float, completed: int) -> float:
    """Half a cosine from the base rate to the minimum, where it stays."""
    return half_cosine(base, section.min_learning_rate, min(completed, section.T_max), section.T_max)


def cosine_warm_restarts(section: CosineAnnealingWarmRestartsLR, base: float, completed: int) -> float:
    """Half cosines of T_0, T_0 * T_mult, ... steps; each starts again at the base rate.

    Counted in whole numbers: a logarithm could miss a restart by one.
    """
    size = section.T_0
    if section.T_mult == 1:
        completed %= size
    while completed >= size:
        completed -= size
        size *= section.T_mult
    return half_cosine(base, section.min_learning_rate, completed, size)


def half_cosine(base: float, minimum: float, offset: int, size: int) -> float:
    """From `base` at 0 to `minimum` at `size`."""
    return minimum + (base - minimum) / 2 * (1 + math.cos(math.pi * offset / size))


def custom_formula(section: CustomLR) -> Formula:
    """What the section's function gives; a rate that is no number from 0 on is refused."""
    formula = make_part("learning_rate", section)
    require_call("learning_rate", section, formula, "(base, completed)")
    name = f"custom_learning_rate '{section.import_path}'"

    def rate(base: float, completed: int) -> float:
        try:
            value = formula(base, completed)
        except Exception as error:
            raise ConfigError(f"{name}: fails after {completed}: {error_text(error)}") from error
        if not hasattr(value, "__float__") or not math.isfinite(value) or value < 0:
            raise ConfigError(f"{name}: gives {value!r} after {completed}, no rate")
        return float(value)

    return rate


class PlateauSchedule:
    """base * factor ^ k, never under the minimum; k grows when `patience` evaluations and one more were no better."""

    def __init__(self, section: ReduceOnPlateauLR, base: float) -> None:
        self.base, self.metric = base, section.metric
        self._section = section
        self._best: float | None = None
        self._num_waited = 0
        self._num_reductions = 0

    def value(self, step: int, epoch: int) -> float:
        if not self.base:
            return 0.0
        return max(self.base * self._section.factor**self._num_reductions, self._section.min_learning_rate)

    def observe(self, value: float) -> None:
        """Take the metric of one evaluation; a value that is not a number is no improvement."""
        gain = math.inf if self._best is None else value - self._best
        if self._best is not None and self._section.mode is MetricMode.min:
            gain = -gain
        if not math.isnan(value) and gain > self._section.min_delta:
            self._best, self._num_waited = value, 0
            return
        self._num_waited += 1
        if self._num_waited > self._section.patience:
            self._num_reductions, self._num_waited = self._num_reductions + 1, 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "best": self._best,
            "num_waited": self._num_waited,
            "num_reductions": self._num_reductions,
            "metric": self.metric,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there; refused if it speaks of another metric, whose values cannot be compared."""
        if state["metric"] != self.metric:
            raise CheckpointError(
                f"reduce_on_plateau_learning_rate watched '{state['metric']}' so far, now '{self.metric}'; "
                "keep the metric, or start over with --ignore_restore_optimizer"
            )
        self._best = state["best"]
        self._num_waited, self._num_reductions = state["num_waited"], state["num_reductions"]


class Schedule(Protocol):
    """A learning rate over a run."""

    def value(self, step: int, epoch: int) -> float:
        """The rate after so many completed steps and epochs; a base of 0 stays 0."""


@dataclass(frozen=True, slots=True)
class FormulaSchedule:
    """A learning rate that depends on nothing but the steps and epochs, after the warm-up of its section."""

    base: float
    formula: Formula
    by_epoch: bool = False
    """Whether completed epochs are counted instead of completed steps."""
    warmup_size: int = 0
    warmup_learning_rate: float = 0.0

    def value(self, step: int, epoch: int) -> float:
        completed, start = epoch if self.by_epoch else step, self.warmup_learning_rate
        if not self.base:
            return 0.0
        if completed < self.warmup_size:
            return start + (self.base - start) * completed / self.warmup_size
        return self.formula(self.base, completed - self.warmup_size)


def preview_schedule(section: Section | Mapping[str, Any], lr: float, steps: int) -> list[float]:
    """The rates after 0, 1, ..., `steps` completed steps (or epochs, when the section counts them) on a base of `lr`.

    Reduce-on-plateau moves by evaluations alone, so that its preview is the base rate. The section is a schedule's
    own, such as `ExponentialDecayLR`, or what a run file would say:

    >>> preview_schedule({"exponential_decay_learning_rate": {"decay_size": 1, "decay_factor": 0.5}}, 0.8, 3)
    [0.8, 0.4, 0.2, 0.1]
    """
    given: tuple[object, object] = (lr, steps)  # a notebook may give anything
    is_rate = isinstance(given[0], int | float) and math.isfinite(lr) and lr >= 0
    if not is_rate or not isinstance(given[1], int) or steps < 0:
        raise ConfigError(
            f"preview_schedule: lr {lr!r}, steps {steps!r}: a rate is a number from 0 on, and steps are a whole one"
        )
    if isinstance(section, Mapping):
        section = parse_section(ScheduleOptions, json.dumps(section), "json").section
    schedule = build_schedule(section, lr)
    return [schedule.value(completed, completed) for completed in range(steps + 1)]


def build_schedule(section: Section, lr: float | None = None) -> Schedule:
    """The schedule that a section describes, on a base rate of `lr`, or that of the optimizer that it chooses.

    The section is a schedule's own, or one that may name one, such as an optimizer's: constant when it names none.
    """
    if isinstance(section, ScheduleOptions):
        if lr is None and (optimizer := section.chosen("optimizer")) is not None:
            lr = optimizer[1].lr
        chosen = section.chosen("learning_rate")
        section = ConstantLR() if chosen is None else chosen[1]
    if lr is None:
        raise ConfigError(f"{type(section).__name__}: no optimizer is chosen, whose rate it is to start from")
    problem = dict(rate_problems(section, lr)).get("min_learning_rate")
    if problem is not None:
        raise ConfigError.at(f"{type(section).__name__}.min_learning_rate", problem)
    if isinstance(section, ReduceOnPlateauLR):
        return PlateauSchedule(section, lr)
    if isinstance(section, CustomLR):
        return FormulaSchedule(lr, custom_formula(section), section.by_epoch)
    formula = FORMULAS.get(type(section))
    if formula is None:
        known: list[type[Section]] = [*FORMULAS, CustomLR, ReduceOnPlateauLR]
        names = ", ".join(each.__name__ for each in known)
        raise ConfigError(f"{type(section).__name__} is not the section of a schedule; known: {names}")
    settings = {name: getattr(section, name) for name in _COUNTING if hasattr(section, name)}
    return FormulaSchedule(lr, partial(formula, section), **settings)


_COUNTING = ("by_epoch", "warmup_size", "warmup_learning_rate")

FORMULAS: dict[type[Section], Callable[[Any, float, int], float]] = {
    ConstantLR: lambda section, base, completed: base,
    ExponentialDecayLR: exponential_decay,
    ManualStepLR: manual_step,
    CosineAnnealingLR: cosine_annealing,
    CosineAnnealingWarmRestartsLR: cosine_warm_restarts,
}
"""The schedules of the run file that are formulas, by their section."""
