"""The formulas of learning-rate schedules, each a function of the base rate and of completed steps (or epochs)."""

import math
from bisect import bisect_left
from collections.abc import Callable

from penstock.config.errors import ConfigError
from penstock.config.registry import error_text, make_part, require_call
from penstock.optim.sections.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestartsLR,
    CustomLR,
    ExponentialDecayLR,
    ManualStepLR,
)

Formula = Callable[[float, int], float]
"""From the base rate and the number of completed steps (or epochs) to a rate."""


def constant(_section: ConstantLR) -> Formula:
    """Always the base rate."""
    return lambda base, completed: base


def custom(section: CustomLR) -> Formula:
    """What the function at the section's place gives; a rate that is no number from 0 on is refused."""
    formula = make_part("learning_rate", section)
    require_call("learning_rate", section, formula, "(base, completed)")

    def rate(base: float, completed: int) -> float:
        try:
            value = formula(base, completed)
        except Exception as error:
            raise ConfigError(f"{name}: fails after {completed}: {error_text(error)}") from error
        if not hasattr(value, "__float__") or not math.isfinite(value) or value < 0:
            raise ConfigError(f"{name}: gives {value!r} after {completed}, no rate")
        return float(value)

    name = f"custom_learning_rate '{section.place}'"

    return rate


def exponential_decay(section: ExponentialDecayLR) -> Formula:
    """base * decay_factor ^ (completed / decay_size), with staircase floored, never under the minimum."""
    size, factor, minimum = section.decay_size, section.decay_factor, section.min_learning_rate

    def rate(base: float, completed: int) -> float:
        exponent = completed // size if section.staircase else completed / size
        return max(base * math.pow(factor, exponent), minimum)

    return warmed_up(rate, section.warmup_learning_rate, section.warmup_size)


def manual_step(section: ManualStepLR) -> Formula:
    """The rate of the last size that is passed; before the first the base, or a line from it to the first rate."""
    sizes, rates = section.schedule_sizes, section.learning_rates

    def rate(base: float, completed: int) -> float:
        num_passed = bisect_left(sizes, completed)
        if num_passed:
            return rates[num_passed - 1]
        return base + (rates[0] - base) * completed / sizes[0] if section.warmup else base

    return rate


def cosine_annealing(section: CosineAnnealingLR) -> Formula:
    """Half a cosine from the base rate to the minimum, where it stays."""
    size, minimum = section.T_max, section.min_learning_rate

    def rate(base: float, completed: int) -> float:
        return half_cosine(base, minimum, min(completed, size), size)

    return warmed_up(rate, section.warmup_learning_rate, section.warmup_size)


def cosine_warm_restarts(section: CosineAnnealingWarmRestartsLR) -> Formula:
    """Half cosines of T_0, T_0 * T_mult, ... steps; each starts again at the base rate."""

    def rate(base: float, completed: int) -> float:
        place, size = place_in_cycle(completed, section.T_0, section.T_mult)
        return half_cosine(base, section.min_learning_rate, place, size)

    return warmed_up(rate, section.warmup_learning_rate, section.warmup_size)


def place_in_cycle(completed: int, first_size: int, factor: int) -> tuple[int, int]:
    """The place inside its cycle, and the cycle's size, in whole numbers: a logarithm could miss a restart by one."""
    if factor == 1:
        return completed % first_size, first_size
    size = first_size
    while completed >= size:
        completed -= size
        size *= factor
    return completed, size


def half_cosine(base: float, minimum: float, place: int, size: int) -> float:
    """From `base` at place 0 to `minimum` at place `size`."""
    return minimum + (base - minimum) / 2 * (1 + math.cos(math.pi * place / size))


def warmed_up(formula: Formula, start: float, size: int) -> Formula:
    """A line from `start` to the base rate over `size` steps, then the formula, counting from there."""

    def rate(base: float, completed: int) -> float:
        if completed < size:
            return start + (base - start) * completed / size
        return formula(base, completed - size)

    return rate
