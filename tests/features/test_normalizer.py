import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.features.normalizer import parse_normalizer


def normalized(text, *numbers):
    with np.errstate(all="ignore"):
        return parse_normalizer(text).function(np.array(numbers, np.float64)).tolist()


@pytest.mark.parametrize(
    ("text", "numbers", "expected"),
    [
        ("method=log10,threshold=1e-10,default=-10", [100.0, 1.0, 1e-10, 0.0, -5.0], [2, 0, -10, -10, -10]),
        ("method=zscore,mean=2,standard_deviation=4", [10.0, 2.0], [2.0, 0.0]),
        ("method=minmax, min=10, max=20", [10.0, 15.0, 30.0], [0.0, 0.5, 2.0]),
    ],
)
def test_methods(text, numbers, expected):
    assert normalized(text, *numbers) == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("x * 2 + 1", [5.0, -5.0]),
        ("-x ^ 2", [-4.0, -9.0]),
        ("max(x, 0) - min(x, 0)", [2.0, 3.0]),
        ("sign(x) * sqrt(abs(x) + 2)", [2.0, -(5**0.5)]),
    ],
)
def test_expressions(formula, expected):
    assert normalized(f"method=expression,expr={formula}", 2.0, -3.0) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("zscore", "does not begin with method="),
        ("method=zcore", "unknown method 'zcore'; did you mean 'zscore'?"),
        ("method=zscore,mean=1", "zscore needs standard_deviation"),
        ("method=zscore,mean=1,standard_deviation=0", "standard_deviation must be above 0"),
        ("method=log10,treshold=1", "unknown option 'treshold' of log10; did you mean 'threshold'?"),
        ("method=expression", "an expression needs expr=, such as expr=log(x + 1)"),
        ("method=expression,expr=pow(x)", "pow takes 2 arguments, not 1"),
    ],
)
def test_wrong_normalizers(one_feature, text, problem):
    with pytest.raises(ConfigError) as caught:
        one_feature("raw_feature", "FG_NORMAL", normalizer=text)

    assert str(caught.value) == f"feature_configs[0].raw_feature.normalizer: '{text}': {problem}"


CODE = ["__import__('os')", "x.__class__", "(lambda: 1)()", "[x][0]", "y", "'a'"]
TOO_LARGE = ["(" * 900 + "x" + ")" * 90, "1" * 900, "x" * 2000]


@pytest.mark.parametrize("formula", CODE + TOO_LARGE)
def test_a_formula_runs_no_code(formula):
    with pytest.raises(ValueError, match=r"is not understood; known: numbers|is not a variable|formula"):
        parse_normalizer(f"method=expression,expr={formula}")
