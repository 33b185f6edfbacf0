"""Draws docs/images/decay.svg: the AUC of one training, with three settings of how it fades.

    python -m benchmarks.measuring.decay_chart

The training is real (`shifting_run`) and takes some ten seconds; the same rows and seed give the same picture.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measuring.shifting_run import Points, Setting, watch
from penstock.observe.report.line_chart import (
    HEIGHT,
    LEFT,
    RIGHT,
    WIDTH,
    LineChart,
    axis_of_x,
    axis_of_y,
    curve,
    grid,
    labels,
)
from penstock.observe.report.markup import Markup, element, joined
from penstock.observe.report.series import Series

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "decay.svg"
SETTINGS: tuple[Setting, ...] = ((0.9, 100), (0.5, 100), (0.9, 10))
"""Decay rate and steps of a window."""

LEGEND_HEIGHT = 24.0
COLORS = ("#2563c9", "#d2571e", "#16855b")
STYLE = (
    "text { font: 11.5px sans-serif; fill: #657184 } .grid { stroke: #e3e7ed } .axis { stroke: #aab4c2 } "
    ".series { fill: none; stroke-width: 1.8; stroke-linejoin: round } "
) + " ".join(f".color-{number} {{ stroke: {color} }}" for number, color in enumerate(COLORS))


def draw(curves: Mapping[Setting, Points]) -> Markup:
    """The chart as a file of its own, with its legend and colours inside."""
    chart = LineChart("Decay", "step", "auc")
    series = [
        Series(f"{rate}, {steps}", points, color=number)
        for number, ((rate, steps), points) in enumerate(curves.items())
    ]
    x_axis, y_axis = axis_of_x(chart, series), axis_of_y(chart, series, None)
    plot = [grid(x_axis, y_axis), labels(chart), *(curve(each, x_axis, y_axis) for each in series)]
    return element(
        "svg",
        element("style", Markup(STYLE)),
        element("rect", width="100%", height="100%", fill="#ffffff"),
        legend(series),
        element("g", *plot, transform=f"translate(0 {LEGEND_HEIGHT:.0f})"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH + RIGHT:.0f} {HEIGHT + LEGEND_HEIGHT:.0f}",
        width=WIDTH + RIGHT,
        role="img",
        aria_label="The auc of one training with three settings of decay",
    )


def legend(series: list[Series]) -> Markup:
    """Which curve is which, above the plot."""
    parts = [element("text", "decay_rate, decay_step:", x=LEFT, y=19.0)]
    for place, each in enumerate(series):
        x = LEFT + 150.0 + place * 90.0
        parts.append(element("line", class_=f"series color-{each.color}", x1=x, x2=x + 14, y1=15.0, y2=15.0))
        parts.append(element("text", each.name, x=x + 18, y=19.0))
    return joined(parts)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(draw(watch(Path(folder), SETTINGS)) + "\n", encoding="utf-8")
