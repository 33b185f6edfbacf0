"""Series -> SVG."""

import html
import json
import re

import pytest

from penstock.observe.report.axes import Unit
from penstock.observe.report.bar_chart import BarChart, BarSeries, draw_bars
from penstock.observe.report.line_chart import LineChart, draw_lines
from penstock.observe.report.series import MOST_POINTS, Reference, Series, known_points, thinned

CHART = LineChart("Loss", "step", "loss <mean>")


def pointer_values(markup: str) -> dict[str, object]:
    """What the script of the page gets."""
    [found] = re.findall(r'data-chart="([^"]*)"', markup)
    values: dict[str, object] = json.loads(html.unescape(found))
    return values


def test_a_curve_has_a_corner_for_each_point_and_the_script_gets_the_values() -> None:
    markup = draw_lines(CHART, [Series("train", [(0, 1.0), (10, 0.5), (20, 0.25)])])

    [corners] = re.findall(r'<polyline class="series color-0" points="([^"]*)"', markup)
    assert corners.split()[0].startswith("80.0,")  # the first step lies at the left edge
    assert len(corners.split()) == 3
    assert pointer_values(markup)["series"] == [
        {"name": "train", "look": "color-0", "points": [[0, 1.0], [10, 0.5], [20, 0.25]]}
    ]


def test_text_is_escaped() -> None:
    assert "loss &lt;mean&gt;" in draw_lines(CHART, [Series("a&b", [(0, 1.0)])])


def test_a_single_point_is_a_dot() -> None:
    assert draw_lines(CHART, [Series("eval", [(3, 1.0)])]).count("<circle") == 1


def test_there_is_room_for_what_values_are_compared_with() -> None:
    markup = draw_lines(CHART, [Series("memory", [(0, 1.0), (1, 2.0)])], Reference("limit", 10.0))

    assert pointer_values(markup)["y"] == {"low": 0.0, "high": 10.0, "unit": "number"}
    assert '<i class="key reference"></i>limit' in markup


def test_bars_say_their_values_and_a_missing_one_is_left_out() -> None:
    chart = BarChart("Memory", ["reader", "model"], "bytes", Unit.bytes)
    markup = draw_bars(
        chart, [BarSeries("planned", [1024, 2048], hollow=True), BarSeries("measured", [512, None])]
    )

    assert re.findall(r"<title>([^<]*)</title>", markup) == [
        "planned: 1KiB",
        "measured: 512B",
        "planned: 2KiB",
    ]


def test_unknown_values_are_left_out() -> None:
    assert known_points([(1, 0.5), (2, None), (3, float("nan"))]) == [(1, 0.5)]


@pytest.mark.parametrize("spike", [1, 2, 19_997, 19_998])
def test_a_spike_beside_an_end_of_a_long_series_stays(spike: int) -> None:
    points = [(float(x), 100.0 if x == spike else float(-x % 7)) for x in range(20_000)]

    kept = thinned(points)

    assert len(kept) <= MOST_POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert kept == sorted(set(kept))
    assert points[spike] in kept


def test_a_long_series_is_thinned_and_keeps_its_ends_and_its_spike() -> None:
    points = [(float(step), 1.0) for step in range(100_000)]
    points[54_321] = (54_321.0, 99.0)

    kept = thinned(points)

    assert len(kept) <= MOST_POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert (54_321.0, 99.0) in kept
    assert list(kept) == sorted(kept)


def test_colours_begin_anew_after_the_last() -> None:
    assert 'class="series color-1"' in draw_lines(CHART, [Series("tenth", [(0, 1.0), (1, 2.0)], color=9)])
