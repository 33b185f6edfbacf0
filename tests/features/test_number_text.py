"""Numbers in texts are what Python reads there, and what is none is told with its place."""

import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.features.text import BadToken, Text, parse_numbers, text_of


@given(st.lists(st.lists(st.floats(allow_nan=False))))
@example([[5e-324, 2.2250738585072011e-308, 1.7976931348623157e308, -0.0, 9007199254740993.0]])
def test_numbers_are_parsed_to_the_nearest_double(rows):
    texts = ["|".join(repr(value) for value in row) for row in rows]

    values, lengths = parse_numbers(text_of(texts), b"|")

    assert values.tobytes() == np.array([value for row in rows for value in row], np.float64).tobytes()
    assert lengths.tolist() == [len(row) for row in rows]


@given(st.integers(0, 10**19 - 1), st.integers(-400, 400))
@example(145844745729808550, -1)
@example(9007199254740993, 0)
@example(24703282292062327, -340)
@example(24703282292062328, -340)
def test_any_digits_and_exponent_give_what_python_gives(digits, power):
    text = f"{digits}e{power}"

    values, _ = parse_numbers(text_of([text]), b"")

    assert struct.pack("d", values[0]) == struct.pack("d", float(text))


@pytest.mark.parametrize(
    "text", ["1", "-1", "+1", ".5", "5.", "00012.50", " 1e5\t", "1E-5", "-Infinity", "inf"]
)
def test_numbers_may_be_spelled_as_in_python(text):
    values, _ = parse_numbers(text_of([text]), b"")

    assert values.tolist() == [float(text)]


@pytest.mark.parametrize(
    "text", [".", "e5", "1e", "1e+", "1.2.3", "--1", "1_0", "0x10", "abc", "infin", "1 2"]
)
def test_what_is_not_a_number_is_told_with_its_place(text):
    with pytest.raises(BadToken) as caught:
        parse_numbers(text_of(["1|2", f"3|{text}"]), b"|")

    assert (caught.value.text_index, caught.value.token, caught.value.problem) == (1, text, "is not a number")


def test_blank_texts_have_no_numbers():
    values, lengths = parse_numbers(text_of(["", "1| 2", " \t", "3"]), b"|")

    assert values.tolist() == [1.0, 2.0, 3.0]
    assert lengths.tolist() == [0, 2, 0, 1]


@pytest.mark.parametrize("text", ["|1", "1||2", "1|"])
def test_an_empty_token_among_others_is_bad(text):
    with pytest.raises(BadToken) as caught:
        parse_numbers(text_of(["", "0", text]), b"|")

    assert (caught.value.text_index, caught.value.token) == (2, "")


def test_the_first_of_many_bad_tokens_is_told():
    texts = [str(number) for number in range(1000)]
    texts[700], texts[900] = "seven", "nine"

    with pytest.raises(BadToken) as caught:
        parse_numbers(text_of(texts), b"|")

    assert (caught.value.text_index, caught.value.token) == (700, "seven")


def test_a_bad_token_that_is_no_utf_8_can_be_told():
    text = Text(np.frombuffer(b"1\xff", np.uint8), np.array([0, 1, 2]))

    with pytest.raises(BadToken) as caught:
        parse_numbers(text, b"")

    assert (caught.value.text_index, caught.value.token) == (1, "\ufffd")


def test_numbers_do_not_load_the_kernels():
    code = (
        "import sys; from penstock.features.text import parse_numbers; "
        "from penstock.features.text import text_of; parse_numbers(text_of(['1|2']), b'|'); "
        "sys.exit('numba' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
