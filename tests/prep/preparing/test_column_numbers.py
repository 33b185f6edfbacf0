"""Numbers of columns, and rows whose numbers cannot be used."""

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.prep.preparing.column_numbers import column_numbers, side_by_side


def test_numbers_that_are_missing_or_of_another_length():
    with pytest.raises(
        DataError, match=r"^a\.csv: row 12: column 'x': is null; fill it in, or leave the row out$"
    ):
        column_numbers(pa.array([1, 2, None]), "a.csv", "x", 10)
    with pytest.raises(
        DataError, match=r"^a\.csv: row 11: column 'x': has 1 values but row 10 has 2; all must"
    ):
        column_numbers(pa.array([[1, 2], [3]]), "a.csv", "x", 10)
    with pytest.raises(
        DataError, match=r"^a\.csv: row 11: column 'x': holds a null in its list; fill it in$"
    ):
        column_numbers(pa.array([[1, 2], [3, None]]), "a.csv", "x", 10)
    with pytest.raises(
        DataError, match=r"^a\.csv: column 'x': holds lists of lists; give one list for a row$"
    ):
        column_numbers(pa.array([[[1]], [[2]]]), "a.csv", "x")


def test_lists_are_rows():
    assert column_numbers(pa.array([[1, 2], [3, 4]]), "a.csv", "x").tolist() == [[1, 2], [3, 4]]
    assert column_numbers(pa.array([[5], [1], [2]], pa.list_(pa.int8(), 1))[1:], "a", "x").tolist() == [
        [1],
        [2],
    ]


def test_columns_side_by_side():
    whole, halves = column_numbers(pa.array([1, 2]), "a", "x"), column_numbers(pa.array([0.5, 1.5]), "a", "y")
    pairs = column_numbers(pa.array([[7, 8], [9, 10]]), "a", "z")

    assert side_by_side([whole, halves, pairs]).tolist() == [[1, 0.5, 7, 8], [2, 1.5, 9, 10]]
    assert side_by_side([whole]).tolist() == [[1], [2]]
