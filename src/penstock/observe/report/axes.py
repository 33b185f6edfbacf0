"""Round numbers along an axis, and how values are written there."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Self

from penstock.config.sizes import format_size

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_ROUND_BINARY = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)


class Unit(Enum):
    """What the values of an axis are."""

    number = "number"
    count = "count"
    bytes = "bytes"
    share = "share"


@dataclass(frozen=True, slots=True)
class Axis:
    """From a value to a place: `low` lies at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    unit: Unit
    step: float
    """Between two marks."""

    @classmethod
    def of(cls, low: float, high: float, start: float, end: float, unit: Unit) -> Self:
        """With about five marks."""
        return cls(low, high, start, end, unit, round_step((high - low) / 5, unit))

    def at(self, value: float) -> float:
        """Where a value lies."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values between low and high."""
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        return [index * self.step for index in range(first, last + 1)]


def axis_over(values: Sequence[float], start: float, end: float, unit: Unit, from_zero: bool = False) -> Axis:
    """An axis with room for all values, which ends at round numbers."""
    low, high = min(values), max(values)
    if from_zero:
        low = min(0.0, low)
    if low == high:
        low, high = (low - abs(low) * 0.1, high + abs(high) * 0.1) if low else (0.0, 1.0)
    step = round_step((high - low) / 5, unit)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(low, high, start, end, unit, step)


def round_step(least: float, unit: Unit) -> float:
    """The smallest round number that is not below `least`.

    >>> round_step(0.13, Unit.number), round_step(3.0 * 1024**2, Unit.bytes) / 1024**2
    (0.2, 4.0)
    """
    base = 1024.0 if unit is Unit.bytes else 10.0
    factors = _ROUND_BINARY if unit is Unit.bytes else _ROUND
    size = base ** math.floor(math.log(least, base))
    if unit in (Unit.count, Unit.bytes):
        size = max(size, 1.0)
    step = next((factor * size for factor in factors if factor * size >= least * (1 - 1e-9)), base * size)
    return float(math.ceil(step)) if unit is Unit.count else step


def write_number(value: float) -> str:
    """Four digits that count."""
    return f"{value:.4g}"


def write_count(value: float) -> str:
    """A whole number, in thousands or millions where it is large.

    >>> write_count(950), write_count(12_500), write_count(3_000_000)
    ('950', '12.5k', '3M')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.0f}"


WRITE: dict[Unit, Callable[[float], str]] = {
    Unit.number: write_number,
    Unit.count: write_count,
    Unit.bytes: lambda value: format_size(round(value)),
    Unit.share: lambda value: f"{100 * value:.3g}%",
}
"""How a value of each unit is written."""
