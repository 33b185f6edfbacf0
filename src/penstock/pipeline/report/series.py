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
    """As many points as a chart can show: of each stretch the lowest and the highest, so that no spike is lost."""
    if len(points) <= most:
        return points
    stretches = most // 2
    kept: list[Point] = []
    for index in range(stretches):
        stretch = points[index * len(points) // stretches : (index + 1) * len(points) // stretches]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept.extend(sorted(ends))
    kept[0], kept[-1] = points[0], points[-1]
    return kept
