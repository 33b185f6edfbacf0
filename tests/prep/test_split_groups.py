"""What keeps samples together in splits: one number for equal values, whatever type they come in."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.prep.prepare import prepare
from penstock.prep.split_groups import groups_of, sample_group
from tests.prep.raw import prepared_arrays, section

MATCH = "match"


def number(value: Any) -> int:
    return sample_group({MATCH: value}, MATCH, "game", 0)


def numbers(values: Any) -> list[int]:
    found = groups_of(values, MATCH, "game", 0)
    assert found.dtype == np.uint64
    return found.tolist()


SEVENTEENS = [
    *(17, 17.0, "17", b"17", np.int8(17), np.uint64(17), np.float16(17), np.float32(17), np.str_("17")),
    *(np.bytes_(b"17"), np.array(17), "17.", "17.0", "17.00", b"17.0", np.str_("17.0")),
]


def test_a_value_has_one_number_in_every_type():
    assert {number(value) for value in SEVENTEENS} == {number("17")}


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.uint64(), pa.float64()),
        *(pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())),
        *(pa.binary(), pa.large_binary(), pa.binary(2)),
    ],
    ids=str,
)
def test_columns_of_every_type_have_the_same_numbers(kind: Any):
    is_text = not pa.types.is_integer(kind) and not pa.types.is_floating(kind)
    values: list[Any] = ["17", "42"] if is_text else [17, 42]
    column = pa.array(values, kind)

    assert numbers(column) == [number(17), number(42)]
    assert numbers(column.slice(1)) == [number(42)]
    assert numbers(column.slice(2)) == []


def test_what_equals_each_other_is_one_group():
    assert number(True) == number(1) == number(1.0) == numbers(np.array([True]))[0]
    assert number(-0.0) == number(0) == numbers(pa.array([-0.0, 0.5]))[0]
    assert number(2.0**70) == number(2**70) == numbers([2.0**70])[0]
    assert number(np.float32(0.1)) == number(float(np.float32(0.1))) != number(0.1)


WHOLE = {"17.0": "17", "17.": "17", "-3.00": "-3", "007.0": "007"}
OTHERS = [
    *("17.5", "17.01", "1.0.0", "17.0\n", " 17.0", "+17.0"),
    *(".0", "-.0", "1e1.0", "v17.0", "\u0661.0", "17,0"),
]


def test_a_fraction_of_zeros_is_no_other_group():
    """As pandas writes whole numbers of a column with a gap."""
    assert [number(text) for text in WHOLE] == [number(text) for text in WHOLE.values()]
    assert len({number(text) for text in (*OTHERS, *WHOLE.values())}) == len(OTHERS) + 3


def test_a_column_with_a_gap_or_a_letter_in_one_file_only(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.csv").write_text("price,match\n0.5,17\n1.5,3\n")
    (tmp_path / "raw/b.csv").write_text("price,match\n2.5,17.0\n3.5,3.0\n")
    (tmp_path / "raw/c.csv").write_text("price,match\n2.5,17\n3.5,x\n4.5,017\n")

    prepare(section(tmp_path, extract=None, splits={"by": "group", "group_key": MATCH}))

    found = prepared_arrays(tmp_path / "batches")["groups"].tolist()
    assert found == [number(17), number(3)] * 2 + [number(17), number("x"), number("017")]


def test_days_are_told_by_their_text():
    day = datetime.date(2026, 11, 16)

    assert number(day) == numbers(pa.array([day]))[0] == numbers([day])[0] == number("2026-11-16")


texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.text("-017.\n", max_size=6),
)
contents = st.one_of(st.binary(), st.builds(str.encode, texts))
whole = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (st.integers(0, 2**64 - 1), "u8"),
        (floats, "f8"),
        (st.floats(allow_nan=False, width=32), "f4"),
        (texts, "U"),
        (st.one_of(whole, floats, texts, st.booleans(), contents, st.integers()), "O"),
    ],
    ids=["u8", "f8", "f4", "text", "mixed"],
)
@settings(max_examples=40)
@given(data=st.data())
def test_many_at_once_have_the_numbers_that_they_have_one_by_one(
    values: st.SearchStrategy[Any], dtype: str, data: st.DataObject
):
    drawn = data.draw(st.lists(values, max_size=20))
    array = np.empty(len(drawn), object) if dtype == "O" else np.array(drawn, dtype)
    array[:] = drawn
    expected = [number(value) for value in drawn]

    assert numbers(array) == expected
    assert numbers(array[::-1]) == expected[::-1]
    if dtype == "O":
        assert numbers(drawn) == expected
    else:
        assert [number(value) for value in array] == expected
        assert numbers(pa.array(array)) == expected


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "is missing"),
        (float("nan"), "is NaN"),
        (datetime.datetime(2026, 11, 16), "is of type datetime"),
        ([1, 2], "is of type list"),
        ("\ud800", "is text that has no UTF-8 form"),
    ],
)
def test_what_is_no_group_is_told_with_its_place(value: Any, problem: str):
    expected = f"^game: sample 5: '{MATCH}' {problem}; a group is told by a number or a text$"
    with pytest.raises(DataError, match=expected):
        sample_group({MATCH: value}, MATCH, "game", 5)

    both = np.empty(2, object)
    both[0], both[1] = 3, value
    for values in (both, [3, value]):
        with pytest.raises(DataError, match=expected):
            groups_of(values, MATCH, "game", 4)


@pytest.mark.parametrize(
    ("values", "number", "problem"),
    [
        (np.array([1.0, np.nan]), 8, "is NaN"),
        (pa.array(["x", None]).dictionary_encode(), 8, "is missing"),
        (pa.array([[1], [2]]), 7, "holds list<item: int64>"),
        (np.zeros((2, 3)), 7, "has 2 axes"),
        (np.zeros(2, "c8"), 7, "holds complex64"),
    ],
    ids=str,
)
def test_a_column_with_what_is_no_group(values: Any, number: int, problem: str):
    with pytest.raises(DataError, match=f"^game: sample {number}: '{MATCH}' {problem}.*; a group is told by"):
        groups_of(values, MATCH, "game", 7)


def test_the_numbers_never_change():
    assert (number("match-7"), number(7), number(0.5)) == (
        12733249084779802608,
        12244264274225248461,
        14001160319301796428,
    )
