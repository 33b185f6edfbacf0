"""The facts of one column, for every kind of column."""

from datetime import datetime

import pyarrow as pa
import pytest

from penstock.prep.profile.column import ColumnProfile


def facts(*blocks, type=None):
    arrays = [pa.array(block, type) for block in blocks]
    profile = ColumnProfile(pa.field("column", arrays[0].type))
    for array in arrays:
        profile.add(array)
    return profile.facts()


def test_integers():
    found = facts([3, None, 1], [2, 3])

    assert (found.num_rows, found.num_nulls, found.distinct, found.least, found.most) == (5, 1, 3, 1, 3)
    assert (found.mean, found.mean_length) == (2.25, None)


def test_floats_with_nan():
    found = facts([1.5, float("nan"), None, 0.5])

    assert (found.num_nan, found.num_nulls, found.mean, found.least, found.most) == (1, 1, 1.0, 0.5, 1.5)


def test_only_nan():
    found = facts([float("nan")])

    assert (found.least, found.most, found.mean) == (None, None, None)


def test_texts():
    found = facts(["pear", "fig", None], ["apple"])

    assert (found.least, found.most, found.mean_length, found.is_number_text) == ("apple", "pear", 4.0, False)


@pytest.mark.parametrize("texts", [["1", "-2", "3.5"], ["1e3"], [".5", "+7"]])
def test_texts_that_are_numbers(texts):
    assert facts(texts).is_number_text


@pytest.mark.parametrize("texts", [["02134"], ["1", ""], ["1", "x"], [None], ["1;2"], ["nan"]])
def test_texts_that_must_stay_texts(texts):
    assert not facts(texts, type=pa.string()).is_number_text


def test_of_lists_the_items_count():
    found = facts([[1, 2], None, []], [[7, None]])

    assert (found.num_nulls, found.distinct, found.least, found.most) == (1, 3, 1, 7)
    assert found.mean_length == pytest.approx(4 / 3)
    assert found.length_range == (0, 2)


def test_of_lists_of_lists_the_innermost_items_count():
    assert facts([[[1], [2, 3]], [[]]]).distinct == 3


def test_of_maps_the_keys_count():
    found = facts([[("a", 1), ("b", 2)], [], None], type=pa.map_(pa.string(), pa.int64()))

    assert (found.distinct, found.least, found.most, found.mean_length) == (2, "a", "b", 1.0)


def test_a_slice_of_lists_and_maps_knows_nothing_of_the_rest():
    column = pa.array([[("a", 1)], [("b", 2)], [("c", 3)]], pa.map_(pa.string(), pa.int64()))
    profile = ColumnProfile(pa.field("column", column.type))
    profile.add(column.slice(1, 1))

    assert (profile.facts().least, profile.facts().most) == ("b", "b")


def test_moments():
    first, second = datetime(2024, 1, 1), datetime(2024, 1, 2)
    found = facts([first, second])

    assert (found.least, found.most, found.order.is_ascending) == (first, second, True)


def test_dictionaries_are_their_values():
    profile = ColumnProfile(pa.field("column", pa.dictionary(pa.int32(), pa.string())))
    profile.add(pa.array(["a", "b", None, "a"]).dictionary_encode())
    found = profile.facts()

    assert (found.distinct, found.num_nulls, found.top) == (2, 1, ("a", pytest.approx(2 / 3)))


def test_types_without_an_order_are_counted():
    found = facts([{"a": 1}, {"a": 2}, None])

    assert (found.distinct, found.num_nulls, found.least) == (2, 1, None)


def test_booleans():
    found = facts([True, False, True, None])

    assert (found.least, found.most, found.mean) == (False, True, pytest.approx(2 / 3))


def test_no_rows():
    found = facts([], type=pa.int64())

    assert (found.num_rows, found.distinct, found.least, found.top) == (0, 0, None, None)
