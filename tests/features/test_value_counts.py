"""Values that a feature does not know are counted where a model is used; a column's values tell its kind."""

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.features import fast_path
from penstock.features.parser import Parser
from penstock.features.value_counts import ValueCounts, joined_kind, kind_of, may_differ


def counted(feature, column):
    """Values, lengths and counts of one column, as eval and predict see it."""
    parsed = Parser([feature], counts_values=True).parse(pa.record_batch({"f": column}))
    found = parsed.features["f"]
    return found.values.tolist(), found.lengths.tolist(), parsed.counts["f"]


COLUMNS = {
    "numbers": pa.array([1, 10, None, -1, 9]),
    "floats": pa.array([1.0, 10.0, float("nan"), -1.0, 9.0]),
    "strings": pa.array(["1", "10", "", "-1", "9"]),
    "lists": pa.array([[1], [10], [], [-1], [9]]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_an_id_that_the_table_does_not_have_is_left_out(one_feature, column):
    feature = one_feature("id_feature", "FG_NORMAL", num_buckets=10)

    expected = ValueCounts(rows=5, missing=1, values=4, unknown=2, outside="outside 0 to 9")
    assert counted(feature, column) == ([1, 9], [1, 0, 0, 0, 1], expected)


def test_a_row_of_which_no_id_is_left_is_like_one_that_never_had_any(one_feature):
    plain = one_feature("id_feature", "FG_NONE", num_buckets=10)
    with_default = one_feature("id_feature", "FG_NONE", num_buckets=10, fg_encoded_default_value="7")
    weighted = one_feature("id_feature", "FG_NONE", num_buckets=10, weighted=True)

    assert counted(plain, ["1|99|2", "99"])[:2] == ([1, 2], [2, 0])
    assert counted(with_default, ["1|99|2", "99"])[:2] == ([1, 2, 7], [2, 1])
    parsed = Parser([weighted], counts_values=True).parse(pa.record_batch({"f": ["1:0.5|99:2|2:1.5"]}))
    assert parsed.features["f"].weights.tolist() == [0.5, 1.5]


def test_values_outside_a_vocabulary_are_counted_and_the_default_is_none_of_them(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", vocab_list=["a", "b"], default_value="none")

    values, lengths, counts = counted(feature, ["a", "c", None, "none", "d"])

    assert (values, lengths) == ([2, 1, 0, 0, 1], [1] * 5)
    assert counts == ValueCounts(rows=5, missing=1, values=4, unknown=2, outside="not in its vocabulary")


def test_unknown_values_that_were_given_the_row_of_a_word_are_known(one_feature):
    apart = one_feature("id_feature", "FG_NORMAL", vocab_list=["a", "b"], default_bucketize_value=2)
    with_a = one_feature("id_feature", "FG_NORMAL", vocab_list=["a", "b"], default_bucketize_value=0)

    assert counted(apart, ["a", "x"])[2].unknown == 1
    assert counted(with_a, ["a", "x"])[2].unknown == 0


def test_hashes_are_not_counted(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", hash_bucket_size=10)

    assert Parser([feature], counts_values=True).parse(pa.record_batch({"f": ["a"]})).counts == {}


def test_the_fast_path_counts_too_and_declines_what_it_cannot_copy(one_feature, monkeypatch):
    monkeypatch.setattr(fast_path, "_MIN_ROWS", 1)
    parser = Parser([one_feature("id_feature", "FG_NONE", num_buckets=10)], counts_values=True)

    plain = parser.parse(pa.record_batch({"f": [1, 2, 3]}))
    general = parser.parse(pa.record_batch({"f": [1, 20, 3]}))

    assert plain.plain is not None
    assert plain.counts["f"] == ValueCounts(3, 0, 3, 0, "outside 0 to 9")
    assert general.plain is None
    assert general.features["f"].values.tolist() == [1, 3]
    assert general.counts["f"] == ValueCounts(3, 0, 3, 1, "outside 0 to 9")


# --- Vocabularies of numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["1", "2"], ["1.0", "2.0"]], ids=str)
@pytest.mark.parametrize("column", [pa.array([1, 2, 3]), pa.array([1.0, 2.0, 3.0])], ids=["int64", "double"])
def test_numbers_are_found_however_the_vocabulary_writes_them(one_feature, words, column):
    feature = one_feature("id_feature", "FG_NORMAL", vocab_list=words)

    assert counted(feature, column)[0] == [2, 3, 1]


def test_strings_are_looked_up_as_they_are_written(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", vocab_list=["1", "2.0"])

    assert counted(feature, ["1", "1.0", "2", "2.0"])[0] == [2, 1, 1, 3]


def test_two_words_that_are_one_number_cannot_be_told_apart_in_a_column_of_numbers(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", vocab_list=["1", "1.0"])

    with pytest.raises(DataError) as caught:
        Parser([feature]).warm(pa.schema([("f", pa.float64())]))

    assert str(caught.value) == (
        "column 'f': is a column of numbers, where '1' and '1.0' of the vocabulary are one; leave out one of them"
    )
    assert counted(feature, ["1", "1.0"])[0] == [2, 3]


# --- Kinds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "options", "kind"),
    [
        (pa.array([1, None]), {}, "number"),
        (pa.array([1.0, 2.5]), {}, "number"),
        (pa.array([[1], []]), {}, "number"),
        (pa.array([True]), {}, "number"),
        (pa.array([0], pa.date32()), {}, "date"),
        (pa.array([0], pa.timestamp("s")), {}, "timestamp"),
        (pa.array(["a", "1"]), {}, "string"),
        (pa.array(["007"]), {}, "string"),
        (pa.array(["138.0"]), {}, "string"),
        (pa.array([["x"]], pa.list_(pa.string_view())), {}, "string"),
        (pa.array(["x"]).dictionary_encode(), {}, "string"),
        (pa.array(["12", "-3", None, ""]), {}, "integer string"),
        (pa.array(["1|2", "3"]), {"separators": ["|"]}, "integer string"),
        (pa.array(["1:0.5|2", "3:1"]), {"separators": ["|"], "weighted": True}, "integer string"),
        (pa.array([[("1", 0.5)]], pa.map_(pa.string(), pa.float64())), {}, "integer string"),
    ],
    ids=str,
)
def test_kinds(column, options, kind):
    found = kind_of(column, **options)

    assert found is not None
    assert found[0] == kind


@pytest.mark.parametrize(
    "column", [pa.nulls(2), pa.array([None], pa.string()), pa.array([""]), pa.array([float("nan")])], ids=str
)
def test_a_column_without_values_has_no_kind(column):
    assert kind_of(column) is None


def test_which_kinds_have_other_ids():
    assert may_differ("string", "number")
    assert may_differ("date", "timestamp")
    assert not may_differ("number", "integer string")
    assert not may_differ("integer string", "string")
    assert [joined_kind(first, "string") for first in (None, "integer string", "string")] == ["string"] * 3
    assert joined_kind("number", "integer string") == "number"
