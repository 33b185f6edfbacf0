"""Pairs are numbered, and drawn by number, without a rounding error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.xauc_pairs import drawn_numbers, num_pairs, pairs_numbered


def test_pairs_are_numbered_by_their_later_row():
    earlier, later = pairs_numbered(np.arange(6))

    assert list(zip(earlier.tolist(), later.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 2),
        (0, 3),
        (1, 3),
        (2, 3),
    ]


@given(st.integers(1, 2**31), st.sampled_from([0, 1, -1]))
def test_numbers_where_a_root_would_round_are_right(later, beside):
    number = max(later * (later - 1) // 2 + beside, 0)

    (i,), (j,) = (rows.tolist() for rows in pairs_numbered(np.array([number])))

    assert 0 <= i < j
    assert j * (j - 1) // 2 + i == number


@given(st.integers(2, 60), st.data())
def test_drawn_pairs_are_different_pairs_of_the_rows(num_rows, data):
    num_all = num_pairs(num_rows)
    num_draws = data.draw(st.integers(1, num_all))
    noise = np.random.default_rng(num_rows).integers(0, 2**64, num_draws, dtype=np.uint64)
    start = np.array([data.draw(st.integers(0, num_all - 1))])

    numbers = drawn_numbers(np.arange(num_draws), num_draws, num_all, start, noise)

    assert len(set(numbers.tolist())) == num_draws
    assert 0 <= numbers.min() <= numbers.max() < num_all


def test_every_number_is_as_likely():
    generator = np.random.default_rng(0)
    counts = np.zeros(10)
    for _ in range(7000):
        noise = generator.integers(0, 2**64, 7, dtype=np.uint64)
        counts[drawn_numbers(np.arange(7), 7, 10, generator.integers(0, 10, 1), noise)] += 1

    assert counts / 7000 == pytest.approx(np.full(10, 0.7), abs=0.02)
