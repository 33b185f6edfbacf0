"""The normalizer option of number features: `method=NAME,option=value,...`.

| method     | options (default)                | x ->                                    |
|------------|----------------------------------|-----------------------------------------|
| log10      | threshold (1e-10), default (-10) | log10(x) if x > threshold, else default |
| zscore     | mean, standard_deviation         | (x - mean) / standard_deviation         |
| minmax     | min, max                         | (x - min) / (max - min)                 |
| expression | expr                             | the formula over x (arithmetic.py)      |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.features.arithmetic import parse_formula
from penstock.features.columns import Float64Array

Normalizer = Callable[[Float64Array], Float64Array]

_OPTIONS: dict[str, dict[str, float | None]] = {
    "log10": {"threshold": 1e-10, "default": -10.0},
    "zscore": {"mean": None, "standard_deviation": None},
    "minmax": {"min": None, "max": None},
}


def parse_normalizer(text: str) -> Normalizer:
    """The function that the option describes; pickled, it is the text.

    >>> parse_normalizer("method=zscore,mean=2,standard_deviation=4")(np.array([10.0]))
    array([2.])
    """
    return _Described(text, _function_of(text))


@dataclass(frozen=True, slots=True)
class _Described:
    """A function that goes to other processes as the text that describes it."""

    text: str
    function: Normalizer

    def __call__(self, x: Float64Array) -> Float64Array:
        return self.function(x)

    def __reduce__(self) -> tuple[Callable[[str], Normalizer], tuple[str]]:
        return parse_normalizer, (self.text,)


def _function_of(text: str) -> Normalizer:
    method, _, rest = text.partition(",")
    key, _, name = (part.strip() for part in method.partition("="))
    if key != "method":
        raise _problem(text, "does not begin with method=")
    if name == "expression":
        return _expression(text, rest)
    if name not in _OPTIONS:
        raise _problem(text, f"unknown method '{name}'; {hint(name, [*_OPTIONS, 'expression'])}")
    return _METHODS[name](text, _read_options(text, name, rest))


def _read_options(text: str, method: str, rest: str) -> dict[str, float]:
    options = dict(_OPTIONS[method])
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in options:
            raise _problem(text, f"unknown option '{key}' of {method}; {hint(key, options)}")
        try:
            options[key] = float(value)
        except ValueError as error:
            raise _problem(text, f"{key}: '{value}' is not a number") from error
    missing = [key for key, value in options.items() if value is None]
    if missing:
        raise _problem(text, f"{method} needs {' and '.join(missing)}")
    return {key: value for key, value in options.items() if value is not None}


def _log10(_text: str, options: dict[str, float]) -> Normalizer:
    threshold, default = options["threshold"], options["default"]

    def normalize(x: Float64Array) -> Float64Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(x > threshold, np.log10(x), default)

    return normalize


def _zscore(text: str, options: dict[str, float]) -> Normalizer:
    mean, deviation = options["mean"], options["standard_deviation"]
    if not deviation > 0:
        raise _problem(text, "standard_deviation must be above 0")
    return lambda x: (x - mean) / deviation


def _minmax(text: str, options: dict[str, float]) -> Normalizer:
    low, high = options["min"], options["max"]
    if not high > low:
        raise _problem(text, "max must be above min")
    return lambda x: (x - low) / (high - low)


_METHODS: dict[str, Callable[[str, dict[str, float]], Normalizer]] = {
    "log10": _log10,
    "zscore": _zscore,
    "minmax": _minmax,
}


def _expression(text: str, rest: str) -> Normalizer:
    key, _, formula_text = rest.strip().partition("=")
    if key.strip() != "expr":
        raise _problem(text, "an expression needs expr=, such as expr=log(x + 1)")
    try:
        formula = parse_formula(formula_text, frozenset({"x"}))
    except ValueError as error:
        raise _problem(text, str(error)) from error
    return lambda x: np.broadcast_to(formula({"x": x}), x.shape)


def _problem(text: str, problem: str) -> ConfigError:
    return ConfigError.at("normalizer", f"'{text}': {problem}")
