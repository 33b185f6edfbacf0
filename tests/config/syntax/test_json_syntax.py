import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.syntax.json_syntax import read_json_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=50)
@given(VALUES)
def test_values_are_those_of_the_standard_library(value: object):
    assert read_json_value(json.dumps(value)).data == value
    assert read_json_value(json.dumps(value, indent=1, ensure_ascii=False)).data == value


def test_every_key_and_entry_has_its_place():
    parsed = read_json_value('{"a": 1,\n "b": {"c": [true,\n  null]}}')

    assert parsed.positions == {
        ("a",): (1, 2),
        ("b",): (2, 2),
        ("b", "c"): (2, 8),
        ("b", "c", 0): (2, 14),
        ("b", "c", 1): (3, 3),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n "a": 2}', "line 2, column 2: a: is written twice"),
        ('{"a": 1,}', "line 1, column 9: is not valid JSON: expected a key in double quotes"),
        ('{"a" 1}', "line 1, column 6: is not valid JSON: expected ':'"),
        ("[1 2]", "line 1, column 4: is not valid JSON: expected ',' or ']'"),
        ('{"a": }', "line 1, column 7: is not valid JSON: expected a value"),
        ('{"a": "x}', "line 1, column 7: is not valid JSON: unterminated string starting at"),
        ("{} x", "line 1, column 4: is not valid JSON: expected the end of the file"),
    ],
)
def test_problems_of_the_text(text: str, problem: str):
    assert [str(found) for found in read_json_value(text).problems] == [problem]
