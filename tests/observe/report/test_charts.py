"""Series -> charts with coordinates; the page draws them."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.sizes import MIB
from penstock.observe.report.charts import (
    MAX_POINTS,
    Series,
    Unit,
    axis_over,
    known_points,
    line_chart,
)


def lines(*series: Series, reference: tuple[str, float] | None = None) -> dict[str, Any]:
    chart = line_chart("Loss", "loss", series, reference=reference)
    assert chart is not None
    return chart


def test_a_curve_has_a_corner_for_each_point_and_the_script_gets_the_values() -> None:
    chart = lines(Series("train", [(0, 1.0), (10, 0.5), (20, 0.25)], color=9))

    [curve] = chart["curves"]
    assert curve["corners"].split()[0].startswith("80.0,")  # the first step lies at the left edge
    assert len(curve["corners"].split()) == 3
    assert json.loads(chart["pointer"])["series"] == [
        {"name": "train", "look": "color-1", "points": [[0, 1.0], [10, 0.5], [20, 0.25]]}
    ]


def test_a_single_point_is_a_dot_and_no_point_is_no_chart() -> None:
    assert len(lines(Series("eval", [(3, 1.0)]))["curves"][0]["dots"]) == 1
    assert line_chart("Loss", "loss", [Series("eval", [])]) is None
    assert known_points([(1, 0.5), (2, None), (3, float("nan"))]) == [(1, 0.5)]


@pytest.mark.parametrize("spike", [1, 10_000, 19_998])
def test_a_long_series_is_thinned_and_keeps_its_ends_and_its_spike(spike: int) -> None:
    points = [(float(x), 100.0 if x == spike else float(-x % 7)) for x in range(20_000)]

    kept = known_points(points)

    assert len(kept) <= MAX_POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert kept == sorted(set(kept))
    assert points[spike] in kept


@pytest.mark.parametrize(
    ("values", "unit", "from_zero", "labels"),
    [
        ([0.773, 0.8039], "number", False, ["0.77", "0.78", "0.79", "0.8", "0.81"]),
        ([100 * MIB, 900 * MIB], "bytes", True, ["0B", "256MiB", "512MiB", "768MiB", "1GiB"]),
        ([1, 2], "count", False, ["1", "2"]),
    ],
)
def test_an_axis_ends_at_round_numbers_and_marks_them(
    values: list[float], unit: Unit, from_zero: bool, labels: list[str]
) -> None:
    axis = axis_over(values, 0, 100, unit, from_zero=from_zero)

    assert [label for _, label in axis.ticks] == labels
    assert (axis.at(axis.low), axis.at(axis.high)) == (0, 100)


@given(
    st.lists(st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-9), min_size=1),
    st.sampled_from(get_args(Unit)),
)
def test_every_value_lies_on_the_axis_and_marks_are_few(values: list[float], unit: Unit) -> None:
    axis = axis_over(values, 0, 1, unit)

    assert axis.low < axis.high
    assert axis.low <= min(values) + 1e-6 * (axis.high - axis.low)
    assert axis.high >= max(values) - 1e-6 * (axis.high - axis.low)
    assert 1 <= len(axis.ticks) <= 8
