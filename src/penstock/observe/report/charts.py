"""Charts as numbers: axes, curves and bars with their coordinates, which page.html.j2 draws as SVG."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.config.sizes import format_size

Unit = Literal["number", "count", "bytes", "share"]
Point = tuple[float, float]
Chart = dict[str, Any]
"""What the template draws."""

MAX_POINTS = 600
"""Of one series: more than a chart has pixels would only make the page large."""
NUM_COLORS = 8
"""Colours of page.css; further series start over."""
WIDTH, HEIGHT = 520.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 80.0, 14.0, 12.0, 44.0
BAR_LEFT, BAR_RIGHT, BAR_TOP, BAR_HEIGHT, BAR_GAP = 150.0, 66.0, 8.0, 11.0, 9.0


@dataclass(frozen=True, slots=True)
class Axis:
    """From a value to a coordinate: `low` lies at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[tuple[float, str]] = field(default_factory=list)
    """Coordinates and labels."""

    def at(self, value: float) -> float:
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)


def axis_over(
    values: Sequence[float],
    start: float,
    end: float,
    unit: Unit,
    *,
    from_zero: bool = False,
    round_ends: bool = True,
) -> Axis:
    """An axis that covers all values, with about five ticks at round numbers; it ends at such numbers too, or not."""
    low, high = min(values), max(values)
    if from_zero:
        low = min(0.0, low)
    if low == high and not round_ends:
        low, high = low - 1, high + 1
    elif low == high:
        low, high = (low - abs(low) * 0.1, high + abs(high) * 0.1) if low else (0.0, 1.0)
    # Ticks are as far apart as the smallest round number that gives few of them; bytes are round at powers of two.
    min_step = (high - low) / 5
    base = 1024.0 if unit == "bytes" else 10.0
    factors = [2.0**power for power in range(11)] if unit == "bytes" else [1.0, 2.0, 2.5, 5.0, 10.0]
    size = base ** math.floor(math.log(min_step, base))
    if unit in ("count", "bytes"):
        size = max(size, 1.0)
    step = next((factor * size for factor in factors if factor * size >= min_step * (1 - 1e-9)), base * size)
    if unit == "count":
        step = float(math.ceil(step))
    if round_ends:
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    axis = Axis(low, high, start, end)
    for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        axis.ticks.append((axis.at(index * step), FORMAT[unit](index * step)))
    return axis


def format_count(value: float) -> str:
    """A whole number, in thousands or millions where it is large.

    >>> format_count(950), format_count(12_500), format_count(3_000_000)
    ('950', '12.5k', '3M')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.0f}"


FORMAT: dict[Unit, Callable[[float], str]] = {
    "number": lambda value: f"{value:.4g}",
    "count": format_count,
    "bytes": lambda value: format_size(round(value)),
    "share": lambda value: f"{100 * value:.3g}%",
}


@dataclass(frozen=True, slots=True)
class Series:
    """A curve, in the order of its x; `dotted` marks every point, where there are few."""

    name: str
    points: Sequence[Point]
    color: int = 0
    dashed: bool = False
    dotted: bool = False


def known_points(pairs: Iterable[tuple[float, float | None]]) -> list[Point]:
    """The points that have a value, thinned to what a chart can show.

    Of a longer series the ends stay, and of each stretch between them the lowest and the highest.
    """
    points = [(x, y) for x, y in pairs if y is not None and math.isfinite(y)]
    if len(points) <= MAX_POINTS:
        return points
    inner, stretches = points[1:-1], MAX_POINTS // 2 - 1
    kept = [points[0]]
    for index in range(stretches):
        stretch = inner[index * len(inner) // stretches : (index + 1) * len(inner) // stretches]
        kept += sorted({min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])})
    return [*kept, points[-1]]


def line_chart(
    title: str,
    y_label: str,
    series: Sequence[Series],
    *,
    x_label: str = "step",
    x_unit: Unit = "count",
    y_unit: Unit = "number",
    from_zero: bool = False,
    filled: bool = False,
    top: float | None = None,
    reference: tuple[str, float] | None = None,
    mark: tuple[str, float] | None = None,
) -> Chart | None:
    """The chart of the series that have points; None where none has.

    `reference` is a y value to compare with (a limit), `mark` an x value with a meaning; the y axis reaches `top`.
    """
    series = [each for each in series if each.points]
    if not series:
        return None
    xs = [x for each in series for x, _ in each.points]
    ys = [y for each in series for _, y in each.points]
    # The x axis ends where the points end: there is nothing to see beyond.
    x_axis = axis_over(xs, LEFT, WIDTH - RIGHT, x_unit, round_ends=False)
    shown_too = [value for value in (reference and reference[1], top) if value is not None]
    y_axis = axis_over([*ys, *shown_too], HEIGHT - BOTTOM, TOP, y_unit, from_zero=from_zero)
    if mark is not None and not x_axis.low <= mark[1] <= x_axis.high:
        mark = None
    curves, shown = [], []
    for each in series:
        look = f"color-{each.color % NUM_COLORS}" + (" dashed" if each.dashed else "")
        points = [(x_axis.at(x), y_axis.at(y)) for x, y in each.points]
        corners = " ".join(f"{x},{y}" for x, y in points)
        curves.append(
            {
                "name": each.name,
                "look": look,
                "corners": corners,
                # The area below the curve.
                "ground": f"{points[0][0]},{y_axis.start} {corners} {points[-1][0]},{y_axis.start}",
                # A line of a single point cannot be seen.
                "dots": points if each.dotted or len(points) == 1 else [],
            }
        )
        # Six digits that count: more would only make the page large.
        values = [[x, float(f"{y:.6g}")] for x, y in each.points]
        shown.append({"name": each.name, "look": look, "points": values})
    pointer = {
        "x": {"label": x_label, "low": x_axis.low, "high": x_axis.high, "unit": x_unit},
        "y": {"low": y_axis.low, "high": y_axis.high, "unit": y_unit},
        "plot": {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        "series": shown,
    }
    return {
        "form": "lines",
        "title": title,
        "x_label": x_label,
        "y_label": y_label,
        "x_ticks": x_axis.ticks,
        "y_ticks": y_axis.ticks,
        "curves": curves,
        "filled": filled,
        "reference": None if reference is None else (reference[0], y_axis.at(reference[1])),
        "mark": None if mark is None else (mark[0], x_axis.at(mark[1])),
        # What page.js needs to show values under the pointer.
        "pointer": json.dumps(pointer, separators=(",", ":"), allow_nan=False),
    }


@dataclass(frozen=True, slots=True)
class BarSeries:
    """One colour of bars, a value for each row (None: no bar); `hollow` bars are drawn as outlines."""

    name: str
    values: Sequence[float | None]
    color: int = 0
    hollow: bool = False


def bar_chart(title: str, rows: Sequence[str], label: str, unit: Unit, series: Sequence[BarSeries]) -> Chart:
    """Horizontal bars, a group of them for each row, with the value at the end of each."""
    known = [value for each in series for value in each.values if value is not None]
    axis = axis_over([0.0, *known], BAR_LEFT, WIDTH - BAR_RIGHT, unit, from_zero=True)
    height = BAR_HEIGHT * len(series) + BAR_GAP
    looks = [f"color-{each.color % NUM_COLORS}" + (" hollow" if each.hollow else "") for each in series]
    names, bars = [], []
    for index, row in enumerate(rows):
        top = BAR_TOP + index * height + BAR_GAP / 2
        names.append((row, top + BAR_HEIGHT * len(series) / 2 + 4))
        for offset, (each, look) in enumerate(zip(series, looks, strict=True)):
            value = each.values[index]
            if value is not None:
                width, y = max(axis.at(value) - BAR_LEFT, 1.0), top + BAR_HEIGHT * offset
                shown = {"name": each.name, "look": look, "text": FORMAT[unit](value)}
                bars.append({**shown, "width": width, "y": y})
    return {
        "form": "bars",
        "title": title,
        "label": label,
        "legend": [(each.name, look) for each, look in zip(series, looks, strict=True)],
        # Where the plot ends at the bottom.
        "base": BAR_TOP + height * len(rows),
        "ticks": axis.ticks,
        "names": names,
        "bars": bars,
    }
