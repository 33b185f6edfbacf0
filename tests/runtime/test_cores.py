"""Threads of a computation: one core stays free for the data."""

import pytest

from penstock.runtime.cores import compute_threads


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (16, 15)])
def test_one_core_is_left_for_the_data(cores, threads):
    assert compute_threads(cores, {}) == threads


def test_what_the_user_says_counts():
    assert compute_threads(2, {"OMP_NUM_THREADS": "2"}) == 2


def test_nonsense_does_not_count():
    assert compute_threads(4, {"OMP_NUM_THREADS": "many"}) == 3
