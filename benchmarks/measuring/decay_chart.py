"""Draws docs/images/decay.svg: one train metric of one run, with three settings of how it fades.

    python -m benchmarks.measuring.decay_chart

The run is made up: every step gives a noisy mean absolute error, which falls from 0.3 to 0.2 after step 1,000.
"""

from pathlib import Path

import numpy as np

from penstock.metrics.regression import MeanAbsoluteError
from penstock.metrics.windows import TrainMetricWrapper
from penstock.pipeline.report.line_chart import (
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
from penstock.pipeline.report.markup import Markup, element, joined
from penstock.pipeline.report.series import Series

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "decay.svg"
SETTINGS = ((0.9, 100), (0.5, 100), (0.9, 10))
"""Decay rate and steps of a window."""

NUM_STEPS = 2000
STEP_OF_CHANGE = 1000
STEPS_BETWEEN_POINTS = 10
LEGEND_HEIGHT = 24.0
COLORS = ("#2563c9", "#d2571e", "#16855b")
STYLE = (
    "text { font: 11.5px sans-serif; fill: #657184 } .grid { stroke: #e3e7ed } .axis { stroke: #aab4c2 } "
    ".series { fill: none; stroke-width: 1.8; stroke-linejoin: round } "
) + " ".join(f".color-{number} {{ stroke: {color} }}" for number, color in enumerate(COLORS))


def errors_of_steps() -> list[float]:
    """The error that each step of the run gives."""
    noise = np.random.default_rng(0).normal(0.0, 0.05, NUM_STEPS)
    means = np.where(np.arange(1, NUM_STEPS + 1) <= STEP_OF_CHANGE, 0.3, 0.2)
    return [float(error) for error in means + noise]


def followed(decay_rate: float, decay_step: int) -> list[tuple[float, float]]:
    """What the metric shows after every tenth step."""
    metric = TrainMetricWrapper(MeanAbsoluteError(), decay_rate, decay_step)
    points = []
    for step, error in enumerate(errors_of_steps(), start=1):
        metric.update([error], [0.0])
        if step % STEPS_BETWEEN_POINTS == 0:
            points.append((float(step), metric.compute()))
    return points


def draw() -> Markup:
    """The chart as a file of its own, with its legend and colours inside."""
    chart = LineChart("Decay", "step", "mean absolute error")
    series = [
        Series(f"{rate}, {steps}", followed(rate, steps), color=number)
        for number, (rate, steps) in enumerate(SETTINGS)
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
        aria_label="The mean absolute error of one run with three settings of decay",
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
    PICTURE.write_text(draw() + "\n", encoding="utf-8")
