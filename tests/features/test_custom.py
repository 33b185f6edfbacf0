import pickle
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.features import build_features
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection

HERE = "tests.features.test_custom"


class Ratio:
    """Two numbers to one, without looking at rows one by one."""

    def __init__(self, at_most=1.0):
        self.at_most = at_most

    def __call__(self, part, whole):
        ratio = pc.divide(pc.cast(part, pa.float64()), whole)
        return pc.min_element_wise(ratio, self.at_most, skip_nulls=False)


class Words:
    """The words of all texts of a row; what comes back may be lists."""

    takes_lists = True
    reads_strings = True

    def __call__(self, texts):
        return [[word for text in row for word in text.split()] for row in texts.to_pylist()]


class Pairs:
    def __call__(self, number):
        return np.stack([number, number], axis=1)


class Kinds:
    def __call__(self, values):
        return pa.array([str(values.type)] * len(values))


class TooFew:
    def __call__(self, values):
        return [1]


class Failing:
    def __call__(self, values):
        return 1 / 0


def custom(operator, inputs, mode="FG_NORMAL", kind="custom_feature", **options):
    name = operator if isinstance(operator, str) else f"{HERE}:{operator.__name__}"
    fields = {"feature_name": "f", "operator_name": name, "expression": inputs, **options}
    config = FeatureConfig.model_validate({kind: fields})
    return build_features([config], ParsingSection.model_validate({"fg_mode": mode}))[0]


def column_of(feature, **columns):
    return Parser([feature]).parse(pa.record_batch(columns)).features["f"]


def test_a_class_makes_numbers_of_columns():
    feature = custom(
        Ratio, ["user:clicks", "user:views"], operator_params={"at_most": 0.5}, default_value="-1"
    )

    column = column_of(feature, clicks=[1, 9, 1], views=[4, 10, None])

    assert column.values.tolist() == [[0.25], [0.5], [-1.0]]


def test_a_class_makes_values_that_become_ids():
    feature = custom(Words, ["title"], vocab_list=["red", "shoes"], embedding_dim=4, default_value="")

    column = column_of(feature, title=["red shoes\x1dblue", "", "red"])

    assert (column.values.tolist(), column.lengths.tolist()) == ([2, 3, 1, 2], [3, 0, 1])
    assert Parser([feature]).text_columns == ("title",)


def test_a_class_makes_vectors():
    assert column_of(custom(Pairs, ["x"], value_dim=2), x=[1, 2]).values.tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1], "int64"),
        ([1.5], "double"),
        (["a"], "string"),
        ([date(2024, 1, 1)], "date32[day]"),
        ([datetime(2024, 1, 1)], "timestamp[s]"),
    ],
)
def test_what_a_class_is_given(values, kind):
    feature = custom(Kinds, ["x"], vocab_list=[kind], embedding_dim=4)

    assert column_of(feature, x=values).values.tolist() == [2]


def test_every_step_of_a_sequence_is_a_row():
    feature = custom(Ratio, ["a", "b"], kind="sequence_custom_feature", sequence_fields=["a"])

    column = column_of(feature, a=["1;2", "3"], b=[4, 6])

    assert (column.values[:, 0].tolist(), column.steps.tolist()) == ([0.25, 0.5, 0.5], [2, 1])


def test_an_operator_goes_to_other_processes():
    feature = pickle.loads(pickle.dumps(custom(Ratio, ["a", "b"])))  # noqa: S301

    assert column_of(feature, a=[1], b=[2]).values.tolist() == [[0.5]]


@pytest.mark.parametrize(
    ("operator", "values", "problem"),
    [
        (TooFew, [1, 2], f"column 'x': {HERE}:TooFew gave 1 entries for 2 rows"),
        (Failing, [1, 2], f"column 'x': {HERE}:Failing failed: ZeroDivisionError: division by zero"),
        (
            Kinds,
            ["a", "b\x1dc"],
            f"row 1: column 'x': has 2 values; {HERE}:Kinds takes one in each row (takes_lists is not set)",
        ),
    ],
)
def test_what_goes_wrong_is_named(operator, values, problem):
    with pytest.raises(DataError) as caught:
        column_of(custom(operator, ["x"]), x=values)

    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "Editdistance",
            (
                "custom_feature 'Editdistance': is no entry point of the group penstock.features (there: none); "
                'write it as "package.module:attribute"'
            ),
        ),
        (
            f"{HERE}:Ration",
            f"custom_feature '{HERE}:Ration': '{HERE}' has no 'Ration'; did you mean 'Ratio'?",
        ),
    ],
)
def test_an_operator_that_is_not_there(name, problem):
    with pytest.raises(ConfigError) as caught:
        custom(name, ["x"])

    assert str(caught.value) == f"feature_configs[0].custom_feature: {problem}"


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("kitten", "sitting", 3.0),
        ("same", "same", 0.0),
        ("abc", "c", 2.0),
        ("naïve", "naive", 1.0),
        (12, 132, 1.0),
        ("a", None, -1.0),
    ],
)
def test_edit_distance_is_built_in(left, right, distance):
    feature = custom(
        "EditDistance", ["user:query", "item:title"], operator_lib_file="lib.so", default_value="-1"
    )

    column = column_of(feature, query=[left, left], title=[right, right])

    assert column.values.tolist() == [[distance], [distance]]


def test_edit_distance_of_bytes():
    feature = custom("EditDistance", ["a", "b"], operator_params={"encoding": "latin"})

    assert column_of(feature, a=["é"], b=["e"]).values.tolist() == [[2.0]]
