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

from penstock.config.errors import hint
from penstock.features.feature import Float64Array

_OPTIONS: dict[str, dict[str, float | None]] = {
    "log10": {"threshold": 1e-10, "default": -10.0},
    "zscore": {"mean": None, "standard_deviation": None},
    "minmax": {"min": None, "max": None},
}


@dataclass(frozen=True, slots=True)
class Normalizer:
    """The function that the option describes; it goes to other processes as its text.

    NumPy warns of what is not finite afterwards; the feature refuses that, and calls the function without warnings.

    >>> parse_normalizer("method=zscore,mean=2,standard_deviation=4").function(np.array([10.0]))
    array([2.])
    """

    text: str
    function: Callable[[Float64Array], Float64Array]

    def __reduce__(self) -> tuple[Any, ...]:
        return parse_normalizer, (self.text,)


def parse_normalizer(text: str) -> Normalizer:
    """ValueError says what is not understood."""
    method, _, rest = text.partition(",")
    key, _, name = (part.strip() for part in method.partition("="))
    if key != "method":
        raise ValueError("does not begin with method=")
    if name == "expression":
        key, _, formula_text = rest.strip().partition("=")
        if key.strip() != "expr":
            raise ValueError("an expression needs expr=, such as expr=log(x + 1)")
        formula = parse_formula(formula_text, frozenset({"x"}))
        return Normalizer(text, lambda x: np.broadcast_to(formula({"x": x}), x.shape))
    if name not in _OPTIONS:
        raise ValueError(f"unknown method '{name}'; {hint(name, [*_OPTIONS, 'expression'])}")
    options = dict(_OPTIONS[name])
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in options:
            raise ValueError(f"unknown option '{key}' of {name}; {hint(key, options)}")
        try:
            options[key] = float(value)
        except ValueError:
            raise ValueError(f"{key}: '{value}' is not a number") from None
    missing = [key for key, number in options.items() if number is None]
    if missing:
        raise ValueError(f"{name} needs {' and '.join(missing)}")
    first, second = (number for number in options.values() if number is not None)
    if name == "zscore":
        if not second > 0:
            raise ValueError("standard_deviation must be above 0")
        return Normalizer(text, lambda x: (x - first) / second)
    if name == "minmax":
        if not second > first:
            raise ValueError("max must be above min")
        return Normalizer(text, lambda x: (x - first) / (second - first))
    return Normalizer(text, lambda x: np.where(x > first, np.log10(x), second))


_LONGEST = 1000

Formula = Callable[[Mapping[str, Float64Array]], Float64Array]

_NUMPY_NAMES = [
    "abs",
    "ceil",
    "exp",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "round",
    "sign",
    "sqrt",
    "tanh",
]
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, getattr(np, name)) for name in _NUMPY_NAMES},
    "ln": (1, np.log),
    "max": (2, np.maximum),
    "min": (2, np.minimum),
    "pow": (2, np.power),
    "sigmoid": (1, lambda x: 1.0 / (1.0 + np.exp(-x))),
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
        return _compile(tree.body, variables)
    except (SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        raise ValueError(f"'{text}' is not a formula") from error


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
            function, arguments = _OPERATORS[type(operator)], [left, right]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            count, function = FUNCTIONS[name]
            if len(arguments) != count:
                raise ValueError(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(arguments)}")
        case _:
            known = ", ".join([*sorted(variables), *sorted(FUNCTIONS)])
            raise ValueError(f"'{ast.unparse(node)}' is not understood; known: numbers, + - * / ^, {known}")
    compiled = [_compile(argument, variables) for argument in arguments]
    return lambda values: function(*(argument(values) for argument in compiled))
