"""What a chart draws: named points, and a line that they are seen against."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Point = tuple[float, float]

MOST_POINTS = 600
"""Of one series: more than a chart has pixels would only make the page large."""

NUM_COLORS = 8
"""Colours of page.css; further series begin anew."""


@dataclass(frozen=True, slots=True)
class Series:
    """A curve, in the order of its x."""

    name: str
    points: Sequence[Point]
    color: int = 0
    """Which colour of the page; series of one run share it."""

    dashed: bool = False
    dotted: bool = False
    """Mark every point, where there are few."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A value to compare with: a limit, a base rate."""

    name: str
    value: float


def known_points(pairs: Iterable[tuple[float, float | None]]) -> Sequence[Point]:
    """The points that have a value, and no more of them than a chart can show."""
    return thinned([(x, y) for x, y in pairs if y is not None and math.isfinite(y)])


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> Sequence[Point]:
    """As many points as a chart can show: the ends, and of each stretch between them the lowest and the highest."""
    if len(points) <= most:
        return points
    inner, stretches = points[1:-1], most // 2 - 1
    kept = [points[0]]
    for index in range(stretches):
        stretch = inner[index * len(inner) // stretches : (index + 1) * len(inner) // stretches]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept.extend(sorted(ends))
    return [*kept, points[-1]]
