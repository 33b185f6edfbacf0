"""Ids and numbers in strings against plain Python definitions of the same thing."""

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.features.arrow_values import read_values
from penstock.features.encoding import IdEncoding
from penstock.features.strings import Rule, as_numbers, encode_strings, hash_integers
from penstock.features.values import BadItem

int64s = st.integers(-(2**63), 2**63 - 1)

separators = st.sampled_from(["|", "\x1d", "\x03", "||", "、", ", "])


def values_of(strings, separator, step_separator=None):
    return read_values(pa.array(strings, pa.string()), "c", separator.encode(), step_separator)


def xxh64(text):
    return xxhash.xxh64_intdigest(text.encode(), seed=0)


def parse_integers(texts, separator, weighted=False):
    return encode_strings(values_of(texts, separator), Rule.PARSE_INTEGER, weighted=weighted)


def hash_tokens(texts, separator="", weighted=False, num_buckets=2**62):
    return encode_strings(values_of(texts, separator), Rule.HASH, num_buckets, weighted=weighted)


@pytest.mark.parametrize("size", [*range(1, 70), 1000])
def test_hash_is_xxh64_for_texts_of_every_length(size):
    text = "".join(chr(33 + i % 90) for i in range(size))

    found = hash_tokens([text])

    assert found.values.tolist() == [xxh64(text) % 2**62]


@given(st.lists(int64s), st.integers(1, 2**40))
@example([0, -1, -(2**63), 2**63 - 1], 1000)
def test_integers_hash_as_their_decimal_text(values, num_buckets):
    found = hash_integers(np.array(values, np.int64), num_buckets)

    assert found.tolist() == [xxh64(str(value)) % num_buckets for value in values]


@given(st.lists(st.lists(int64s)), separators)
def test_integers_are_split_and_parsed(rows, separator):
    texts = [separator.join(str(value) for value in row) for row in rows]

    found = parse_integers(texts, separator)

    assert found.values.tolist() == [value for row in rows for value in row]
    assert found.lengths.tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("text", ["abc", "1.5", "-", "9223372036854775808", "-9223372036854775809", "1 2"])
def test_what_is_not_an_integer_is_told_with_its_place(text):
    with pytest.raises(BadItem) as caught:
        parse_integers(["", "7", text], "|")

    assert (caught.value.row, caught.value.value) == (2, text)
    assert caught.value.problem.startswith("is not a 64-bit integer")


@given(st.integers(0, 10**22), st.integers(-400, 15))
@example(24703282292062327, -61)
def test_a_weight_is_the_nearest_float32(digits, power):
    found = parse_integers([f"1:{digits}e{power}"], "|", weighted=True)

    assert found.weights.tolist() == pytest.approx([np.float32(f"{digits}e{power}")], rel=2**-23, abs=2e-45)


def test_the_last_colon_separates_the_weight_and_a_token_without_one_weighs_1():
    found = hash_tokens(["a:b:0.5|c"], "|", weighted=True)

    assert found.values.tolist() == [xxh64(t) % 2**62 for t in ("a:b", "c")]
    assert found.weights.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("3:", "has a weight that is not a finite number"),
        ("3:1e39", "has a weight that is not a finite number"),
        (":0.5", "has no key"),
    ],
)
def test_a_weight_or_key_that_is_missing_is_told(token, problem):
    with pytest.raises(BadItem) as caught:
        parse_integers([token], "|", weighted=True)

    assert (caught.value.value, caught.value.problem) == (token, problem)


@given(st.dictionaries(st.text(alphabet="abé1", min_size=1), st.integers(0, 99)), st.lists(st.text("abé1")))
def test_vocabulary_finds_exactly_its_own_texts(vocabulary, texts):
    table = IdEncoding(Rule.LOOK_UP, 101, vocabulary, unknown_row=100).vocabulary

    found = encode_strings(values_of(texts, ""), Rule.LOOK_UP, vocabulary=table)

    assert found.values.tolist() == [vocabulary.get(text, 100) for text in texts if text]


@pytest.mark.parametrize(
    "text", [".", "e5", "1e", "1e+", "1.2.3", "--1", "1_0", "0x10", "abc", "infin", "1 2"]
)
def test_what_is_not_a_number_is_reported_with_its_text(text):
    with pytest.raises(BadItem) as caught:
        as_numbers(values_of(["1|2", f"3|{text}"], "|"))

    assert (caught.value.row, caught.value.value, caught.value.problem) == (1, text, "is not a number")
