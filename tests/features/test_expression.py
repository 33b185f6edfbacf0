import pickle
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.features.parser import Parser


@pytest.fixture
def numbers(one_feature):
    """The numbers that a formula gives for columns, each column a keyword: numbers("a + b", a=[1], b=[2])."""

    def calculate(formula, options=(), **columns):
        feature = one_feature("expr_feature", "FG_NORMAL", expression=formula, **dict(options))
        parsed = Parser([feature]).parse(pa.record_batch(columns))
        return np.round(parsed.features["f"].values[:, 0].astype(float), 4).tolist()

    return calculate


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("a + 2 * b", [9.0, 3.0]),
        ("a // b + a % b", [1.0, -5.0]),
        ("a > 1", [0.0, 1.0]),
        ("1 <= a < 3 and not b > 1", [0.0, 0.0]),
        ("a > 1 || b > 1", [1.0, 1.0]),
        ("a == 1 && b != 4", [0.0, 0.0]),
        ("a if a > b else b", [4.0, 5.0]),
        ("where(a > b, 1, -1)", [-1.0, 1.0]),
        ("max(a, b, 3) - min(a, b) + sum(a, b) / mean(a, b)", [5.0, 8.0]),
        ("clip(a, 2, 3)", [2.0, 3.0]),
        ("log(a) / ln(2) - log2(a)", [0.0, 0.0]),
        ("sigmoid(0) + round(a / 2)", [0.5, 2.5]),
    ],
)
def test_formulas(numbers, formula, expected):
    assert numbers(formula, a=[1, 5], b=["4", "-1"]) == expected


def test_variables_may_be_named_with_their_sides(numbers):
    assert numbers("pv / (1 + click)", {"variables": ["item:pv", "user:click"]}, pv=[4], click=[1]) == [2.0]


MOMENTS = [datetime(2024, 2, 29, 23, 5, 59), datetime(1969, 12, 31, 1, 2, 3)]  # a Thursday, a Wednesday


@pytest.mark.parametrize(
    "column",
    [
        pa.array(MOMENTS, pa.timestamp("ns")),
        pa.array(MOMENTS, pa.timestamp("ms", "UTC")),
        ["2024-02-29 23:05:59", "1969-12-31T01:02:03"],
        ["2024-03-01T01:05:59+02:00", "1969-12-31 01:02:03Z"],
    ],
    ids=["timestamp", "with a zone", "strings", "strings with a zone"],
)
@pytest.mark.parametrize(
    ("part", "expected"),
    [
        *(("year", [2024, 1969]), ("month", [2, 12]), ("day", [29, 31])),
        *(("weekday", [3, 2]), ("hour", [23, 1]), ("minute", [5, 2])),
    ],
)
def test_parts_of_times(numbers, column, part, expected):
    assert numbers(f"{part}(seen)", seen=column) == expected


@pytest.mark.parametrize(
    "column",
    [pa.array([date(2024, 2, 29)], pa.date32()), pa.array([date(2024, 2, 29)], pa.date64()), ["2024-02-29"]],
    ids=["date32", "date64", "string"],
)
def test_dates_are_days(numbers, column):
    assert numbers("year(d) * 1000 + month(d) * 100 + day(d) + hour(d)", d=column) == [2024229.0]
    assert numbers("days(d) - days(other)", d=column, other=["2024-02-27 23:00:00"]) == [2.0]


def test_of_a_number_the_formula_says_what_it_counts(numbers):
    assert numbers("year(from_days(x))", x=[19782]) == [2024.0]
    assert numbers("hour(from_seconds(x))", x=[3 * 3600 + 59]) == [3.0]
    assert numbers("minute(from_milliseconds(x))", x=[61_000]) == [1.0]

    with pytest.raises(DataError) as caught:
        numbers("hour(x)", x=[5])
    assert str(caught.value) == (
        "column 'x': is a column of numbers, not of dates or times; write from_seconds(x), from_milliseconds(x) or "
        "from_days(x) for a number x"
    )


def test_a_missing_variable_makes_the_result_missing(numbers):
    columns = {"a": [1.0, None, float("nan")], "b": pa.array([10, 20, None], pa.int64())}

    assert numbers("a + b", {"default_value": "-1"}, **columns) == [11.0, -1.0, -1.0]
    assert numbers("a + b", {"fill_missing": 100.0}, **columns) == [11.0, 120.0, 200.0]
    assert numbers("hour(t)", {"default_value": "-1"}, t=["2024-01-01 05:00", ""]) == [5.0, -1.0]


def test_several_values_are_taken_one_by_one(one_feature):
    feature = one_feature("expr_feature", "FG_NORMAL", expression="a * b", value_dim=2)
    batch = pa.record_batch({"a": [[1, 2], [3, 4], [5]], "b": ["10\x1d20", "100", "1\x1d2"]})

    column = Parser([feature]).parse(batch).features["f"]

    assert column.values.tolist() == [[10, 40], [300, 400], [5, 10]]


def test_values_that_do_not_go_together_are_refused(numbers):
    with pytest.raises(DataError, match=r"row 1: column 'a': variables of 'a \* b' have 2 and 3 values"):
        numbers("a * b", a=[[1], [1, 2]], b=[[1], [1, 2, 3]])


def test_boundaries_make_ids(one_feature):
    options = {"expression": "a / b", "boundaries": [1, 2], "embedding_dim": 4}
    feature = one_feature("expr_feature", "FG_NORMAL", **options)

    column = Parser([feature]).parse(pa.record_batch({"a": [1, 3, 5], "b": [2, 2, 0]})).features["f"]

    assert column.values.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("a", "problem"),
    [
        (["1", "x"], "row 1: column 'a': value 'x' is not a number"),
        (["1", "0"], "row 1: column 'a': value inf is what '1 / a' gives, and no finite number"),
    ],
)
def test_bad_values_are_named(numbers, a, problem):
    with pytest.raises(DataError, match=problem):
        numbers("1 / a", a=a)


def test_the_column_of_a_bad_value_is_named(numbers):
    with pytest.raises(DataError, match=r"row 1: column 'b': value '2024-13-01' is no date or time, such as"):
        numbers("a + year(b)", a=[1, 2], b=["2024-12-01", "2024-13-01"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"expression": "a +"}, "expression: 'a +' is not a formula"),
        (
            {"expression": "a > 0 ? a : 0"},
            "expression: 'a > 0 ? a : 0' is not a formula; write c ? a : b as where(c, a, b)",
        ),
        (
            {"expression": "price + 1", "variables": ["item:prize"]},
            "expression: 'price' is not a variable; did you mean 'prize'?",
        ),
        ({"expression": "where(a, 1)"}, "expression: where takes 3 arguments, not 2"),
        ({"expression": "max(a)"}, "expression: max takes 2 arguments or more, not 1"),
        (
            {"expression": "hour(a + 1)"},
            (
                "expression: hour takes a date or time, not 'a + 1': a variable, or what from_days, "
                "from_milliseconds, from_seconds make of a number"
            ),
        ),
        ({"expression": "1 + 1"}, "expression: '1 + 1' has no variable"),
        (
            {"expression": "a", "variables": ["user:a-b"]},
            "variables: 'a-b' is no name that a formula can have: letters, digits and _",
        ),
    ],
)
def test_wrong_formulas(one_feature, options, problem):
    with pytest.raises(ConfigError) as caught:
        one_feature("expr_feature", "FG_NORMAL", **options)

    assert str(caught.value) == f"feature_configs[0].expr_feature.{problem}"


def test_a_formula_goes_to_other_processes(one_feature):
    pickled = pickle.dumps(one_feature("expr_feature", "FG_NORMAL", expression="a * 2"))
    feature = pickle.loads(pickled)  # noqa: S301

    assert Parser([feature]).parse(pa.record_batch({"a": [2]})).features["f"].values.tolist() == [[4]]


def test_steps_of_a_sequence_are_calculated_one_by_one(one_feature):
    feature = one_feature(
        "sequence_expr_feature", "FG_NORMAL", expression="a * b", sequence_fields=["a"], sequence_length=2
    )
    batch = pa.record_batch({"a": ["1;2;3", "4", ""], "b": [10, 100, 5]})

    column = Parser([feature]).parse(batch).features["f"]

    assert (column.values[:, 0].tolist(), column.steps.tolist()) == ([10, 20, 400, 0], [2, 1, 1])
