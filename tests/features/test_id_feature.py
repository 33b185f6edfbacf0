import pyarrow as pa
import pytest
import xxhash

from penstock.config.errors import DataError
from penstock.features.parser import Parser


def parsed(feature, column, kind=None):
    """Values and lengths, and weights if there are any, as Python lists."""
    array = column if isinstance(column, pa.Array) else pa.array(column, kind)
    found = Parser([feature]).parse(pa.record_batch({"f": array})).features["f"]
    lists = found.values.tolist(), found.lengths.tolist()
    return lists if found.weights is None else (*lists, found.weights.tolist())


def hashed(text, num_buckets):
    return xxhash.xxh64_intdigest(text.encode(), seed=0) % num_buckets


ENCODED_COLUMNS = {
    "text": pa.array(["1|2", "", None, "3"]),
    "dictionary": pa.array(["1|2", "", None, "3"]).dictionary_encode(),
    "lists": pa.array([[1, 2], [], None, [3]]),
    "lists of dictionaries": pa.array(
        [["1", "2"], [], None, ["3"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))
    ),
}


@pytest.mark.parametrize("column", ENCODED_COLUMNS.values(), ids=ENCODED_COLUMNS.keys())
def test_encoded_ids(one_feature, column):
    plain = one_feature("id_feature", "FG_NONE", num_buckets=10)
    with_default = one_feature("id_feature", "FG_NONE", num_buckets=10, fg_encoded_default_value="0")

    assert parsed(plain, column) == ([1, 2, 3], [2, 0, 0, 1])
    assert parsed(with_default, column) == ([1, 2, 0, 0, 3], [2, 1, 1, 1])


WEIGHTED_COLUMNS = {
    "text": pa.array(["1:0.5|2:1.5", "", "3:2.0"]),
    "map of text": pa.array(
        [[("1", 0.5), ("2", 1.5)], None, [("3", 2.0)]], pa.map_(pa.string(), pa.float64())
    ),
    "lists of text": pa.array([["1:0.5", "2:1.5"], [], ["3:2.0"]]),
}


@pytest.mark.parametrize("column", WEIGHTED_COLUMNS.values(), ids=WEIGHTED_COLUMNS.keys())
def test_weighted_ids(one_feature, column):
    feature = one_feature("id_feature", "FG_NONE", num_buckets=10, weighted=True)

    assert parsed(feature, column) == ([1, 2, 3], [2, 0, 1], [0.5, 1.5, 2.0])


def test_ids_without_weights_in_a_weighted_feature_weigh_1(one_feature):
    feature = one_feature(
        "id_feature", "FG_NONE", num_buckets=10, weighted=True, fg_encoded_default_value="9:0.25"
    )

    assert parsed(feature, ["1|2:3", None]) == ([1, 2, 9], [2, 1], [1.0, 3.0, 0.25])
    assert parsed(feature, [[1, 2], []]) == ([1, 2, 9], [2, 1], [1.0, 1.0, 0.25])


def test_raw_values_are_hashed(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", hash_bucket_size=1000, separator=",")

    expected = [hashed(text, 1000) for text in ("red", "blue", "red")]
    assert parsed(feature, ["red,blue", None, "", "red"]) == (expected, [2, 0, 0, 1])
    assert parsed(feature, [["red", "blue"], None, [], ["red"]]) == (expected, [2, 0, 0, 1])


def test_vocabulary_keeps_row_0_for_the_default_and_row_1_for_the_unknown(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", vocab_list=["a", "b"], default_value="none")

    assert feature.table.num_rows == 4
    assert parsed(feature, ["a", "b", "c", None, "none"]) == ([2, 3, 1, 0, 0], [1, 1, 1, 1, 1])


def test_integers_are_looked_up_as_their_text(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", vocab_list=["3", "-4", "x", "03"])
    values = list(range(-20, 20))

    assert parsed(feature, values) == parsed(feature, [str(value) for value in values])


def test_whole_floating_numbers_are_ids_and_nan_is_missing(one_feature):
    feature = one_feature("id_feature", "FG_NONE", num_buckets=10)

    assert parsed(feature, [1.0, float("nan"), None, 2.0]) == ([1, 2], [1, 0, 0, 1])


def test_an_id_outside_its_table_is_named(one_feature):
    feature = one_feature("id_feature", "FG_NORMAL", num_buckets=10)

    for column in ([1, None, -1], ["1\x1d2", "", "3\x1d-1"], [[1, 2], [], [3, -1]]):
        with pytest.raises(
            DataError, match="row 2: column 'f': value -1 is outside 0 to 9, the ids of feature 'f'"
        ):
            parsed(feature, column)


@pytest.mark.parametrize(
    ("mode", "options"), [("FG_NONE", {"hash_bucket_size": 10}), ("FG_NORMAL", {"num_buckets": 10})]
)
def test_a_string_where_an_integer_belongs_says_what_to_do(one_feature, mode, options):
    feature = one_feature("id_feature", mode, **options)

    with pytest.raises(DataError) as caught:
        parsed(feature, ["1", "red"])

    assert str(caught.value) == (
        "row 1: column 'f': value 'red' is not a 64-bit integer; "
        "other values need hash_bucket_size or a vocabulary, in fg_mode FG_NORMAL"
    )


def test_more_values_than_value_dim(one_feature):
    feature = one_feature("id_feature", "FG_NONE", num_buckets=10, value_dim=2)

    assert parsed(feature, ["1|2", "3"]) == ([1, 2, 3], [2, 1])
    with pytest.raises(DataError, match="row 0: column 'f': has 3 values; value_dim allows 2"):
        parsed(feature, ["1|2|3"])
