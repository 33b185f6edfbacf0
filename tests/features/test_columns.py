"""Lengths and the rows that they count."""

import numpy as np

from penstock.features.feature import SparseColumn, fill_missing, one_per_row, row_of_value, sum_by_row


def test_lengths_of_one_value_in_every_row_take_no_memory_for_any_number_of_rows():
    lengths = one_per_row(10**12)

    assert len(lengths) == 10**12
    assert lengths.dtype == np.int32
    assert lengths.base.nbytes == 4
    assert not lengths.flags.writeable


def test_columns_of_as_many_rows_share_them():
    assert one_per_row(3).tolist() == [1, 1, 1]
    assert one_per_row(3) is one_per_row(3)


def test_the_row_of_a_value():
    lengths = np.array([2, 0, 1], np.int32)

    assert [row_of_value(lengths, index) for index in range(3)] == [0, 0, 2]


def test_counts_of_values_become_lengths_of_rows():
    assert sum_by_row(np.array([1, 0, 3]), np.array([2, 0, 1], np.int32)).tolist() == [1, 0, 3]


def test_only_rows_without_a_value_get_the_default():
    column = SparseColumn(np.array([5, 6]), np.array([2, 0], np.int32), np.array([1, 2], np.float32))

    filled = fill_missing(column, np.array([8, 9]), np.array([0.5, 0.25], np.float32))

    assert filled.values.tolist() == [5, 6, 8, 9]
    assert filled.lengths.tolist() == [2, 2]
    assert filled.weights.tolist() == [1.0, 2.0, 0.5, 0.25]
