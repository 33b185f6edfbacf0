"""Python's numbers in the bytes of arrays: what an array then holds is what it was given, or it was refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.readers.number_casts import REFUSALS, packing

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f4", "f8"]
AROUND_LIMITS = st.integers(-3, 3).flatmap(
    lambda step: st.sampled_from(
        [step + sign * (1 << bits) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (-1, 0, 1)]
    )
)


def taken(values, row, value):
    """Whether the array took the value; what it holds then is looked at."""
    try:
        packing(values)(row, value)
    except REFUSALS:
        return False
    return True


@given(st.sampled_from(INTEGERS), AROUND_LIMITS)
def test_one_whole_number(dtype, number):
    values, limits = np.zeros(3, dtype), np.iinfo(dtype)

    if taken(values, 1, number):
        assert values.tolist() == [0, number, 0]
    else:
        assert not limits.min <= number <= limits.max


@given(st.sampled_from(INTEGERS), st.lists(AROUND_LIMITS, min_size=2, max_size=2))
def test_a_row_of_whole_numbers(dtype, numbers):
    values, limits = np.zeros((3, 2), dtype), np.iinfo(dtype)

    if taken(values, 1, numbers):
        assert values.tolist() == [[0, 0], numbers, [0, 0]]
    else:  # a row of int8 has no short way for negative numbers
        least = 0 if dtype == "i1" else limits.min
        assert not all(least <= number <= limits.max for number in numbers)


@given(st.sampled_from(FLOATS), st.lists(st.floats(), min_size=2, max_size=2))
def test_floats_are_rounded_but_do_not_become_infinite(dtype, numbers):
    rows, column = np.zeros((2, 2), dtype), np.zeros(2, dtype)
    with np.errstate(over="ignore"):
        expected = np.array(numbers).astype(dtype)
    overflown = np.isinf(expected) & np.isfinite(numbers)

    assert taken(rows, 1, numbers) == (not overflown.any())
    assert taken(column, 1, numbers[0]) == (not overflown[0])
    if not overflown.any():
        np.testing.assert_array_equal(rows, [[0, 0], expected])
        np.testing.assert_array_equal(column, [0, expected[0]])


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize(
    "value", [None, "ab", {1: 0, 2: 0}, {1, 2}, iter([1, 2]), [1], [1, 2, 3], [1, None], 2]
)
def test_what_is_no_row_of_two_numbers(dtype, value):
    assert not taken(np.zeros((2, 2), dtype), 1, value)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_fractions_are_no_whole_numbers(dtype):
    assert not taken(np.zeros(2, dtype), 1, 1.5)
    assert not taken(np.zeros((2, 2), dtype), 1, [0, 1.5])


@pytest.mark.parametrize("dtype", ["?", "f2", ">i4", ">f8"])
def test_types_without_a_short_way(dtype):
    assert packing(np.zeros(2, dtype)) is None
