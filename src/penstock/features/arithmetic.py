"""Formulas over numbers, read by a small parser and never evaluated as code.

Known: + - * / ** (also written ^), brackets, numbers, the named variables, and the functions of FUNCTIONS.
Text becomes a tree of Python's own parser; every node that is not one of these is refused, and the tree
becomes NumPy calls.
"""

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock.features.columns import Float64Array

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
