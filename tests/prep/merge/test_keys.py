"""Random numbers of samples, from their places alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.prep.merge.splits import _CHUNK_ROWS, KeyStream


@given(st.integers(0, 2**40), st.integers(0, 50), st.integers(0, 50), st.integers(-5, 5))
def test_any_stretch_can_be_had_alone(first, before, count, seed):
    keys = KeyStream("test", seed)

    whole = keys.of_rows(first, before + count)

    np.testing.assert_array_equal(whole[before:], keys.of_rows(first + before, count))


def test_no_two_samples_have_the_same():
    keys = KeyStream("test", 0).of_rows(0, 2 * _CHUNK_ROWS + 1)

    assert len(np.unique(keys)) == 2 * _CHUNK_ROWS + 1


def test_purpose_and_seed_decide():
    found = {
        tuple(KeyStream(purpose, seed).of_rows(0, 3).tolist())
        for purpose in ("order", "split")
        for seed in (0, 1)
    }

    assert len(found) == 4


@pytest.mark.parametrize("num_rows", [1, 10, 1000, 3 * _CHUNK_ROWS + 7])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.999, 1])
def test_a_bound_has_exactly_so_many_below(num_rows, share):
    keys, rank = KeyStream("test", 3), int(num_rows * share)

    bound = keys.bound(num_rows, rank)

    below = np.sort(keys.of_rows(0, num_rows))[:rank]
    assert len(below) == rank
    assert not rank or int(below[-1]) < bound
    assert rank == num_rows or int(np.sort(keys.of_rows(0, num_rows))[rank]) >= bound


def test_they_are_spread_evenly():
    keys = KeyStream("test", 5).of_rows(0, 64_000)

    counts = np.bincount((keys >> np.uint64(58)).astype(np.int64), minlength=64)

    assert ((counts - 1000) ** 2 / 1000).sum() < 103  # chi-square, 63 degrees: passed by 999 of 1000
