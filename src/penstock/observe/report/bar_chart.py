"""Rows of named values -> horizontal bars in SVG, with the value at the end of each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.observe.report.axes import WRITE, Axis, Unit, axis_over
from penstock.observe.report.markup import Markup, element, joined
from penstock.observe.report.series import NUM_COLORS

WIDTH = 520.0
LEFT, RIGHT, TOP, BOTTOM = 150.0, 66.0, 8.0, 40.0
BAR, GAP = 11.0, 9.0


@dataclass(frozen=True, slots=True)
class BarSeries:
    """One colour of bars, a value for each row; None: no bar."""

    name: str
    values: Sequence[float | None]
    color: int = 0
    hollow: bool = False
    """Drawn as an outline: what was planned, beside what came."""


@dataclass(frozen=True, slots=True)
class BarChart:
    """What a chart says beside its bars."""

    title: str
    rows: Sequence[str]
    label: str
    """What the values are, with the unit."""

    unit: Unit = Unit.number


def draw_bars(chart: BarChart, series: Sequence[BarSeries]) -> Markup:
    """A group of bars for each row."""
    values = [value for each in series for value in each.values if value is not None]
    axis = axis_over([0.0, *values], LEFT, WIDTH - RIGHT, chart.unit, from_zero=True)
    row_height = BAR * len(series) + GAP
    base = TOP + row_height * len(chart.rows)
    parts = [grid(axis, base, chart.label)]
    for index, name in enumerate(chart.rows):
        top = TOP + index * row_height + GAP / 2
        middle = top + BAR * len(series) / 2
        parts.append(element("text", name, class_="name", x=LEFT - 8, y=middle + 4, text_anchor="end"))
        parts += [bar(each, index, axis, top + BAR * place, chart.unit) for place, each in enumerate(series)]
    height = base + BOTTOM
    picture = element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
        aria_label=f"{chart.title}: {chart.label}",
    )
    return element(
        "figure",
        element("figcaption", chart.title),
        legend(series),
        picture,
        class_="chart bars",
        data_bars=json.dumps({each.name: list(each.values) for each in series}),
    )


def bar(series: BarSeries, index: int, axis: Axis, top: float, unit: Unit) -> Markup:
    """One bar and its value; under the pointer it says what it is."""
    value = series.values[index]
    if value is None:
        return Markup()
    look = f"bar color-{series.color % NUM_COLORS}" + (" hollow" if series.hollow else "")
    written = WRITE[unit](value)
    width = max(axis.at(value) - LEFT, 1.0)
    shape = element(
        "rect",
        element("title", f"{series.name}: {written}"),
        class_=look,
        x=LEFT,
        y=top,
        width=width,
        height=BAR - 1.5,
        rx="1.5",
    )
    text = element("text", written, class_="value", x=LEFT + width + 5, y=top + BAR - 2)
    return joined([shape, text])


def grid(axis: Axis, base: float, label: str) -> Markup:
    """Lines at round values, and the values."""
    parts = []
    for value in axis.ticks():
        x = axis.at(value)
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=TOP, y2=base))
        parts.append(
            element("text", WRITE[axis.unit](value), class_="tick", x=x, y=base + 15, text_anchor="middle")
        )
    middle = (axis.start + axis.end) / 2
    parts.append(element("text", label, class_="label", x=middle, y=base + 33, text_anchor="middle"))
    return element("g", *parts)


def legend(series: Sequence[BarSeries]) -> Markup:
    """Which bar is which."""
    items = []
    for each in series:
        look = f"key block color-{each.color % NUM_COLORS}" + (" hollow" if each.hollow else "")
        items.append(element("span", element("i", class_=look), each.name))
    return element("div", *items, class_="legend")
