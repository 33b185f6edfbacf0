"""Numbers of columns, and rows whose numbers cannot be used."""

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.prep.preparing.extraction.column_numbers import column_numbers, side_by_side, with_fill_value


def test_numbers_that_are_missing_or_of_another_length():
    with pytest.raises(
        DataError,
        match=r"^a\.csv: row 12: column 'x': is null; correct it, or leave the row out with a function",
    ):
        column_numbers(pa.array([1, 2, None]), "a.csv", "x", 10)
    with pytest.raises(
        DataError, match=r"^a\.csv: row 11: column 'x': has 1 values but row 10 has 2; all must"
    ):
        column_numbers(pa.array([[1, 2], [3]]), "a.csv", "x", 10)
    with pytest.raises(
        DataError, match=r"^a\.csv: row 11: column 'x': holds a null in its list; correct it, or"
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


@pytest.mark.parametrize(
    ("column", "filled"),
    [
        (pa.array([1, None, 3]), [1, -0.5, 3]),
        (pa.array([1.5, None], pa.float32()), [1.5, -0.5]),
        (pa.array([True, None]), [1, -0.5]),
        (pa.nulls(2), [-0.5, -0.5]),
        (pa.array([[9], [1, None], [None, 2]])[1:], [[1, -0.5], [-0.5, 2]]),
        (pa.array([[9, 9], [1, None]], pa.list_(pa.int8(), 2))[1:], [[1, -0.5]]),
        (pa.array([1, 2]), [1, 2]),
    ],
)
def test_a_number_stands_for_features_that_are_missing(column: pa.Array, filled: list):
    assert column_numbers(with_fill_value(column, -0.5, "a.csv", "x"), "a.csv", "x").tolist() == filled


@pytest.mark.parametrize(
    ("column", "fill_value", "problem"),
    [
        (
            pa.array([1, None]),
            None,
            "row 11: column 'x': is null; set preprocessing.schema.fill_value to the number",
        ),
        (
            pa.array([[1], [None]]),
            None,
            "row 11: column 'x': holds a null in its list; set preprocessing.schema.fill",
        ),
        (pa.array([[1], None]), 0.0, "row 11: column 'x': is null; a list cannot be filled"),
        (pa.array(["a", None]), 0.0, "row 11: column 'x': is null; "),
    ],
)
def test_what_cannot_be_filled(column: pa.Array, fill_value: float | None, problem: str):
    with pytest.raises(DataError) as error:
        column_numbers(with_fill_value(column, fill_value, "a.csv", "x", 10), "a.csv", "x", 10)

    assert str(error.value).startswith(f"a.csv: {problem}")
