"""Series -> a line chart in SVG, with the values in the page for the script that shows them under the pointer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.observe.report.axes import WRITE, Axis, Unit, axis_over
from penstock.observe.report.markup import Markup, element, joined
from penstock.observe.report.series import NUM_COLORS, Reference, Series

WIDTH, HEIGHT = 520.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 80.0, 14.0, 12.0, 44.0


@dataclass(frozen=True, slots=True)
class LineChart:
    """What a chart says beside its series."""

    title: str
    x_label: str
    y_label: str
    """With the unit."""

    x_unit: Unit = Unit.count
    y_unit: Unit = Unit.number
    from_zero: bool = False
    filled: bool = False
    """Colour the ground below the curves: what they are a part of reaches to the top."""

    top: float | None = None
    """Where the y axis ends; absent: where the values end."""


def draw_lines(
    chart: LineChart,
    series: Sequence[Series],
    reference: Reference | None = None,
    x_mark: Reference | None = None,
) -> Markup:
    """The chart of at least one series; `x_mark` is a place on the x axis that has a meaning."""
    x_axis = axis_of_x(chart, series)
    y_axis = axis_of_y(chart, series, reference)
    parts = [grid(x_axis, y_axis), labels(chart)]
    if chart.filled:
        parts += [ground(each, x_axis, y_axis) for each in series]
    parts += [curve(each, x_axis, y_axis) for each in series]
    if reference is not None:
        parts.append(reference_line(reference, y_axis))
    if x_mark is not None and not x_axis.low <= x_mark.value <= x_axis.high:
        x_mark = None
    if x_mark is not None:
        x = x_axis.at(x_mark.value)
        parts.append(element("line", class_="mark", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM))
    parts.append(element("line", class_="cursor", y1=TOP, y2=HEIGHT - BOTTOM))
    picture = element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        role="img",
        aria_label=f"{chart.title}: {chart.y_label} over {chart.x_label}",
    )
    return element(
        "figure",
        element("figcaption", chart.title),
        legend(series, reference, x_mark),
        picture,
        class_="chart",
        data_chart=values_for_pointer(chart, series, x_axis, y_axis),
    )


def axis_of_x(chart: LineChart, series: Sequence[Series]) -> Axis:
    """The axis ends where the points end: there is nothing to see beyond."""
    values = [x for each in series for x, _ in each.points]
    low, high = min(values), max(values)
    if low == high:
        low, high = low - 1, high + 1
    return Axis.of(low, high, LEFT, WIDTH - RIGHT, chart.x_unit)


def axis_of_y(chart: LineChart, series: Sequence[Series], reference: Reference | None) -> Axis:
    """Room for all values and for the line that they are compared with."""
    values = [y for each in series for _, y in each.points]
    values += [reference.value] if reference is not None else []
    axis = axis_over(values, HEIGHT - BOTTOM, TOP, chart.y_unit, chart.from_zero)
    return axis if chart.top is None else Axis.of(axis.low, chart.top, axis.start, axis.end, axis.unit)


def grid(x_axis: Axis, y_axis: Axis) -> Markup:
    """Lines at round values, and the values."""
    parts = []
    for value in y_axis.ticks():
        y = y_axis.at(value)
        parts.append(element("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y))
        parts.append(
            element("text", WRITE[y_axis.unit](value), class_="tick", x=LEFT - 7, y=y + 4, text_anchor="end")
        )
    for value in x_axis.ticks():
        x = x_axis.at(value)
        text = WRITE[x_axis.unit](value)
        parts.append(element("text", text, class_="tick", x=x, y=HEIGHT - BOTTOM + 17, text_anchor="middle"))
    base = HEIGHT - BOTTOM
    parts.append(element("line", class_="axis", x1=LEFT, x2=WIDTH - RIGHT, y1=base, y2=base))
    return element("g", *parts)


def labels(chart: LineChart) -> Markup:
    """What the axes are."""
    middle = (TOP + HEIGHT - BOTTOM) / 2
    y_label = element(
        "text",
        chart.y_label,
        class_="label",
        text_anchor="middle",
        transform=f"translate(13 {middle:.0f}) rotate(-90)",
    )
    x = (LEFT + WIDTH - RIGHT) / 2
    return joined(
        [y_label, element("text", chart.x_label, class_="label", x=x, y=HEIGHT - 8, text_anchor="middle")]
    )


def curve(series: Series, x_axis: Axis, y_axis: Axis) -> Markup:
    """One series; a single point is a dot, since a line of it cannot be seen."""
    parts = [element("polyline", class_=f"series {look_of(series)}", points=places(series, x_axis, y_axis))]
    if series.dotted or len(series.points) == 1:
        parts += [
            element("circle", class_=f"dot {look_of(series)}", cx=x_axis.at(x), cy=y_axis.at(y), r="3")
            for x, y in series.points
        ]
    return joined(parts)


def ground(series: Series, x_axis: Axis, y_axis: Axis) -> Markup:
    """The ground below a curve."""
    first, last = x_axis.at(series.points[0][0]), x_axis.at(series.points[-1][0])
    base = y_axis.start
    corners = f"{first:.1f},{base:.1f} {places(series, x_axis, y_axis)} {last:.1f},{base:.1f}"
    return element("polygon", class_=f"ground {look_of(series)}", points=corners)


def places(series: Series, x_axis: Axis, y_axis: Axis) -> str:
    """The corners of a curve."""
    return " ".join(f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y in series.points)


def reference_line(reference: Reference, y_axis: Axis) -> Markup:
    """A value to compare with."""
    y = y_axis.at(reference.value)
    return element("line", class_="reference", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y)


def legend(series: Sequence[Series], reference: Reference | None, x_mark: Reference | None) -> Markup:
    """Which curve is which."""
    items = [element("span", element("i", class_=f"key {look_of(each)}"), each.name) for each in series]
    if reference is not None:
        items.append(element("span", element("i", class_="key reference"), reference.name))
    if x_mark is not None:
        items.append(element("span", element("i", class_="key mark"), x_mark.name))
    return element("div", *items, class_="legend")


def look_of(series: Series) -> str:
    """Its classes in the style of the page."""
    return f"color-{series.color % NUM_COLORS}" + (" dashed" if series.dashed else "")


def values_for_pointer(chart: LineChart, series: Sequence[Series], x_axis: Axis, y_axis: Axis) -> str:
    """What the script needs to say the values that lie under the pointer."""
    return json.dumps(
        {
            "x": {"label": chart.x_label, "low": x_axis.low, "high": x_axis.high, "unit": x_axis.unit.value},
            "y": {"low": y_axis.low, "high": y_axis.high, "unit": y_axis.unit.value},
            "plot": {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
            "series": [
                {
                    "name": each.name,
                    "look": look_of(each),
                    "points": [[x, rounded(y)] for x, y in each.points],
                }
                for each in series
            ],
        },
        separators=(",", ":"),
        allow_nan=False,
    )


def rounded(value: float) -> float:
    """Six digits that count: more would only make the page large."""
    return float(f"{value:.6g}")
