"""Round numbers along an axis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.sizes import MIB
from penstock.observe.report.axes import WRITE, Unit, axis_over, round_step


def test_an_axis_ends_at_round_numbers_and_marks_them() -> None:
    axis = axis_over([0.773, 0.8039], 0, 100, Unit.number)

    assert [round(tick, 3) for tick in axis.ticks()] == [0.77, 0.78, 0.79, 0.8, 0.81]
    assert (axis.at(axis.low), axis.at(axis.high)) == (0, 100)


def test_bytes_are_marked_at_powers_of_two() -> None:
    axis = axis_over([100 * MIB, 900 * MIB], 0, 1, Unit.bytes, from_zero=True)

    assert [WRITE[Unit.bytes](tick) for tick in axis.ticks()] == ["0B", "256MiB", "512MiB", "768MiB", "1GiB"]


def test_counts_are_marked_at_whole_numbers() -> None:
    assert axis_over([1, 2], 0, 1, Unit.count).ticks() == [1, 2]


@pytest.mark.parametrize("value", [0.0, 3.0, -2.5])
def test_a_single_value_has_room_on_both_sides(value: float) -> None:
    axis = axis_over([value], 0, 1, Unit.number)

    assert axis.low <= value <= axis.high
    assert axis.low < axis.high


@given(
    st.lists(st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-9), min_size=2),
    st.sampled_from(Unit),
)
def test_every_value_lies_on_the_axis_and_marks_are_few(values: list[float], unit: Unit) -> None:
    axis = axis_over(values, 0, 1, unit)

    assert axis.low <= min(values) + 1e-6 * axis.step
    assert axis.high >= max(values) - 1e-6 * axis.step
    assert 1 <= len(axis.ticks()) <= 8


@given(st.floats(1e-9, 1e15), st.sampled_from(Unit))
def test_a_step_is_not_below_what_is_asked_for(least: float, unit: Unit) -> None:
    assert round_step(least, unit) >= least * (1 - 1e-9)
