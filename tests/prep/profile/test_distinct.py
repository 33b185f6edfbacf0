"""Counting distinct values: exact while they are few, within the stated error when they are many."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.features.hashes import value_hashes
from penstock.prep.profile.distinct import STANDARD_ERROR, DistinctCount, FrequentValues, HashRuns


def counted(*blocks):
    count = DistinctCount()
    for block in blocks:
        count.add(HashRuns.of(value_hashes(pa.array(block))))
    return count


def frequent(*blocks):
    values = FrequentValues()
    for block in blocks:
        array = pa.array(block)
        hashes = value_hashes(array)
        values.add(array, hashes, HashRuns.of(hashes))
    return values


def test_few_values_are_counted_exactly():
    count = counted([1, 2, 2], [2, 3], [])

    assert (count.count, count.is_exact) == (3, True)


@pytest.mark.parametrize("num_values", [5_000, 100_000, 1_000_000])
def test_many_values_are_counted_within_three_standard_errors(num_values):
    values = np.arange(num_values)
    count = counted(*np.array_split(np.concatenate([values, values]), 10))

    assert not count.is_exact
    assert count.count == pytest.approx(num_values, rel=3 * STANDARD_ERROR)


def test_the_value_that_most_rows_have():
    values = frequent(["a", "b", "a"], ["a", "c", "d", "a"])

    assert values.top() == ("a", pytest.approx(4 / 7))


def test_no_value_stands_out_among_many():
    assert frequent(range(1000)).top() is None


def test_a_frequent_value_is_found_among_many_others():
    blocks = [[0] * 600 + list(range(start, start + 400)) for start in range(1000, 100_000, 400)]

    assert frequent(*blocks).top() == (0, 0.6)
