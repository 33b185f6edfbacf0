"""Whole files go to splits, and every split is as near to its share as whole files allow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.prep.merge.splits import KeyStream, files_to_splits

shares = st.lists(st.integers(1, 100), min_size=1, max_size=3).map(
    lambda parts: [part / sum(parts) for part in parts]
)


def counts_of(sizes, shares, seed=0):
    num_samples = np.array(sizes, np.int64)
    splits = files_to_splits(num_samples, shares, KeyStream("split by file", seed))
    return [int(num_samples[splits == split].sum()) for split in range(len(shares))]


@given(st.lists(st.integers(0, 1000), max_size=40), shares, st.integers(0, 50))
def test_every_split_is_within_the_largest_file_of_its_share(sizes, shares, seed):
    counts = counts_of(sizes, shares, seed)

    assert sum(counts) == sum(sizes)
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - share * sum(sizes)) <= max(sizes, default=0) + 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_one_large_file_is_of_the_largest_split(seed):
    assert counts_of([1000, 1, 1], [0.8, 0.1, 0.1], seed) == [1000, 1, 1]
    assert counts_of([500, 100, 100, 100, 100, 100], [0.6, 0.4], seed) == [600, 400]


@pytest.mark.parametrize("seed", range(20))
def test_many_files_come_near(seed):
    """Twelve of 5 to 77 samples, 492 together."""
    train, val = counts_of([5, 77, 12, 60, 33, 41, 70, 8, 55, 19, 62, 50], [0.6, 0.4], seed)

    assert train + val == 492
    assert train == pytest.approx(295.2, abs=8)


def test_equal_files_meet_their_shares():
    assert counts_of([10] * 10, [0.8, 0.1, 0.1]) == [80, 10, 10]


@pytest.mark.parametrize(
    ("sizes", "counts"), [([20, 20], [20, 20, 0]), ([20, 20, 20], [40, 20, 0]), ([20], [20, 0, 0])]
)
def test_of_too_few_files_the_largest_split_gets_the_first(sizes, counts):
    assert counts_of(sizes, [0.8, 0.1, 0.1]) == counts


def test_files_without_samples_fill_nothing():
    assert counts_of([0, 0, 0], [0.5, 0.5]) == [0, 0]
    assert counts_of([], [0.5, 0.5]) == [0, 0]
    assert counts_of([0, 5, 0], [0.5, 0.5]) == [5, 0]


def test_a_seed_decides():
    sizes, keys = np.arange(1, 30), [KeyStream("split by file", seed) for seed in (1, 1, 2)]

    first, again, other = (files_to_splits(sizes, [0.5, 0.5], key).tolist() for key in keys)

    assert first == again != other
