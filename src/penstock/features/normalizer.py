"""The normalizer option of number features: `method=NAME,option=value,...`.

| method     | options (default)                | x ->                                    |
|------------|----------------------------------|-----------------------------------------|
| log10      | threshold (1e-10), default (-10) | log10(x) if x > threshold, else default |
| zscore     | mean, standard_deviation         | (x - mean) / standard_deviation         |
| minmax     | min, max                         | (x - min) / (max - min)                 |
| expression | expr                             | the formula over x                      |"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.features.feature import Float64Array

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


_LONGEST = 1000

Formula = Callable[[Mapping[str, Float64Array]], Float64Array]


def _sigmoid(x: Float64Array) -> Float64Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "abs": (1, np.abs),
    "ceil": (1, np.ceil),
    "exp": (1, np.exp),
    "floor": (1, np.floor),
    "ln": (1, np.log),
    "log": (1, np.log),
    "log10": (1, np.log10),
    "log1p": (1, np.log1p),
    "log2": (1, np.log2),
    "max": (2, np.maximum),
    "min": (2, np.minimum),
    "pow": (2, np.power),
    "round": (1, np.round),
    "sigmoid": (1, _sigmoid),
    "sign": (1, np.sign),
    "sqrt": (1, np.sqrt),
    "tanh": (1, np.tanh),
}
"""Functions of a formula, with the number of their arguments."""

_OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


def parse_formula(text: str, variables: frozenset[str]) -> Formula:
    """The function that a formula describes. ValueError says what is not understood.

    >>> parse_formula("min(x, 2) ^ 2", frozenset({"x"}))({"x": np.array([1.0, 5.0])})
    array([1., 4.])
    """
    if len(text) > _LONGEST:
        raise ValueError(f"the formula has {len(text)} characters; at most {_LONGEST} are read")
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
        compute = _compile(tree.body, variables)
    except (SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        raise ValueError(f"'{text}' is not a formula") from error

    def formula(values: Mapping[str, Float64Array]) -> Float64Array:
        with np.errstate(all="ignore"):
            return np.asarray(compute(values), np.float64)

    return formula


def _compile(node: ast.expr, variables: frozenset[str]) -> Formula:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            number = np.float64(value)
            return lambda values: number  # type: ignore[return-value]
        case ast.Name(id=name) if name in variables:
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _compile(operand, variables)
            return lambda values: -inner(values)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _compile(operand, variables)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return _apply(_OPERATORS[type(operator)], [left, right], variables)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            count, function = FUNCTIONS[name]
            if len(arguments) != count:
                raise ValueError(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(arguments)}")
            return _apply(function, arguments, variables)
    known = ", ".join([*sorted(variables), *FUNCTIONS])
    raise ValueError(f"'{ast.unparse(node)}' is not understood; known: numbers, + - * / ^, {known}")


def _apply(function: Callable[..., Any], arguments: list[ast.expr], variables: frozenset[str]) -> Formula:
    compiled = [_compile(argument, variables) for argument in arguments]
    return lambda values: function(*(argument(values) for argument in compiled))
