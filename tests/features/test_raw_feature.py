import pyarrow as pa
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.features.parser import Parser

NAN = float("nan")


def parsed(feature, column, kind=None):
    array = column if isinstance(column, pa.Array) else pa.array(column, kind)
    return Parser([feature]).parse(pa.record_batch({"f": array})).features["f"]


def ids(feature, column, kind=None):
    found = parsed(feature, column, kind)
    return found.values.tolist(), found.lengths.tolist()


VECTORS = {
    "text": pa.array(["1|2.5", "3|-4"]),
    "lists": pa.array([[1, 2.5], [3, -4]]),
    "fixed-size lists": pa.array([[1, 2.5], [3, -4]], pa.list_(pa.float32(), 2)),
}


@pytest.mark.parametrize("column", VECTORS.values(), ids=VECTORS.keys())
def test_vectors(one_feature, column):
    feature = one_feature("raw_feature", "FG_NONE", value_dim=2)

    assert feature.width == 2
    assert parsed(feature, column).values.tolist() == [[1.0, 2.5], [3.0, -4.0]]
    assert parsed(feature, column.slice(1)).values.tolist() == [[3.0, -4.0]]


def test_float32_columns_are_not_copied(one_feature):
    array = pa.array([1, 2.5], pa.float32())

    found = parsed(one_feature("raw_feature", "FG_NONE"), array)

    assert found.values.ctypes.data == array.buffers()[1].address


@pytest.mark.parametrize("column", [[1.0, None], [1.0, NAN], ["1", ""], [[1.0], []]], ids=str)
def test_missing_numbers_need_a_default(one_feature, column):
    encoded = one_feature("raw_feature", "FG_NONE")
    with_default = one_feature("raw_feature", "FG_NONE", fg_encoded_default_value="7.5")
    raw = one_feature("raw_feature", "FG_NORMAL")

    array = pa.array(column, from_pandas=False)
    assert parsed(with_default, array).values.tolist() == [[1.0], [7.5]]
    assert parsed(raw, array).values.tolist() == [[1.0], [0.0]]
    with pytest.raises(DataError) as caught:
        parsed(encoded, array)
    assert str(caught.value) == (
        "row 1: column 'f': expected 1 value (value_dim), found 0: "
        "it is missing and fg_encoded_default_value is not set"
    )


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (["1|2", "3||4"], "row 1: column 'f': value '' is not a number"),
        (
            ["1|2", "3|red"],
            (
                "row 1: column 'f': value 'red' is not a number; leave it empty if it is missing, or make it an "
                "id_feature if it is a string"
            ),
        ),
        (
            ["1|2", "3|4,5"],
            (
                "row 1: column 'f': value '4,5' is not a number; where a comma is the decimal point of CSV files, "
                "set data_config.decimal to ','"
            ),
        ),
        ([[1.0, 2.0], [3.0, NAN]], "row 1: column 'f': has NaN among its values"),
        ([[1.0, 2.0], [3.0, 1e39]], "row 1: column 'f': value 1e+39 is not a finite float32"),
    ],
)
def test_bad_numbers(one_feature, column, problem):
    with pytest.raises(DataError) as caught:
        parsed(one_feature("raw_feature", "FG_NONE", value_dim=2), column)

    assert str(caught.value) == problem


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_number_equal_to_a_boundary_falls_on_it_in_either_precision(one_feature, kind):
    feature = one_feature("raw_feature", "FG_NORMAL", boundaries=[0.1, 0.3, 0.7], embedding_dim=4)

    assert ids(feature, [0.1, 0.3, 0.7], kind) == ([1, 2, 3], [1, 1, 1])
    assert ids(feature, ["0.1", "0.3", "0.7"]) == ([1, 2, 3], [1, 1, 1])


def test_the_normalizer_applies_to_raw_numbers_and_their_default(one_feature):
    options = {"normalizer": "method=zscore,mean=2,standard_deviation=4", "fg_encoded_default_value": "10"}
    raw = one_feature("raw_feature", "FG_NORMAL", default_value="10", **options)
    encoded = one_feature("raw_feature", "FG_NONE", **options)

    assert parsed(raw, [6.0, None]).values.tolist() == [[1.0], [2.0]]
    assert parsed(encoded, [6.0, None]).values.tolist() == [[6.0], [10.0]]


def test_an_empty_sequence_has_one_default_step(one_feature):
    feature = one_feature("sequence_raw_feature", "FG_NORMAL", default_value="7")

    for empty_first in ([[], [1.0, 2.0]], ["", "1;2"]):
        column = Parser([feature]).parse(pa.record_batch({"f": empty_first})).features["f"]
        assert (column.values[:, 0].tolist(), column.steps.tolist()) == ([7, 1, 2], [1, 2])


def test_missing_numbers_may_have_an_interval_of_their_own(one_feature):
    feature = one_feature("raw_feature", "FG_NORMAL", boundaries=[1, 2], missing_bucket=True, embedding_dim=4)

    assert feature.table.num_rows == 4
    assert ids(feature, [0.5, None, 1.5, NAN, 7.0]) == ([0, 3, 1, 3, 2], [1, 1, 1, 1, 1])
    assert ids(feature, [None, None], pa.float32()) == ([3, 3], [1, 1])
    assert ids(feature, ["", "2"]) == ([3, 2], [1, 1])


def test_missing_numbers_are_not_normalised(one_feature):
    normalizer = "method=log10,threshold=0.1,default=-1"
    feature = one_feature(
        "raw_feature",
        "FG_NORMAL",
        boundaries=[0],
        missing_bucket=True,
        embedding_dim=4,
        normalizer=normalizer,
    )

    assert ids(feature, [None, 0.01, 100.0]) == ([2, 0, 1], [1, 1, 1])


def test_an_interval_for_missing_numbers_needs_intervals(one_feature):
    with pytest.raises(ValueError, match="needs boundaries: without intervals there is none"):
        one_feature("raw_feature", "FG_NORMAL", missing_bucket=True)


def test_the_mean_must_be_known(one_feature):
    with pytest.raises(ConfigError) as caught:
        one_feature("raw_feature", "FG_NORMAL", default_value="mean")

    assert str(caught.value) == (
        "feature_configs[0].raw_feature.default_value: is 'mean'; penstock vocab RUN --write puts the mean of the "
        "training data there"
    )
