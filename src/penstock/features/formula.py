"""Formulas over columns, read with Python's `ast` and a list of what is allowed; nothing is ever evaluated as code.

Numbers, + - * / // % ^, comparisons, and / or / not, `a if c else b`, and the functions below. Conditions are 1 and 0.
What has no value, such as 0 / 0, is NaN; no comparison with it holds.

| functions                                                      | of                                            |
|----------------------------------------------------------------|-----------------------------------------------|
| abs sign round floor ceil sqrt exp log ln log2 log10 log1p     | a number                                      |
| sin cos tan tanh sigmoid                                       | a number                                      |
| pow(x, y), where(c, a, b), clip(x, low, high)                  | numbers                                       |
| min max sum mean                                               | two numbers or more                           |
| year month day weekday hour minute seconds days                | a date or time                                |
| from_seconds from_milliseconds from_days                       | a number, which becomes a time                |

A date or time is a column of that type, strings in ISO form, or what from_... makes of a number: a number alone does
not tell its unit. weekday is 0 on Monday; seconds and days count from 1970; times are in UTC.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.config.errors import hint
from penstock.features.values import Float64Array

_MAX_CHARACTERS = 1000

Variables = Mapping[str, Float64Array]
"""Numbers by the name of their variable; times, in seconds since 1970, by `time_key` of it."""

_Node = Callable[[Variables], Any]

_UNARY = [
    *("abs", "ceil", "cos", "exp", "floor", "log", "log10", "log1p", "log2", "round", "sign", "sin"),
    *("sqrt", "tan", "tanh"),
]
_ANY_NUMBER = 0
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, getattr(np, name)) for name in _UNARY},
    "clip": (3, np.clip),
    "ln": (1, np.log),
    "max": (_ANY_NUMBER, lambda *numbers: _folded(np.maximum, numbers)),
    "mean": (_ANY_NUMBER, lambda *numbers: _folded(np.add, numbers) / len(numbers)),
    "min": (_ANY_NUMBER, lambda *numbers: _folded(np.minimum, numbers)),
    "pow": (2, np.power),
    "sigmoid": (1, lambda x: 1.0 / (1.0 + np.exp(-x))),
    "sum": (_ANY_NUMBER, lambda *numbers: _folded(np.add, numbers)),
    "where": (3, lambda condition, yes, no: np.where(_is_true(condition), yes, no)),
}
"""Functions of numbers, with how many they take."""

_DAY = 86_400


def _months(seconds: Float64Array) -> Float64Array:
    """Whole months since 1970."""
    return _as_numbers(_as_datetimes(seconds).astype("datetime64[M]"))


def _day_of_month(seconds: Float64Array) -> Float64Array:
    dates = _as_datetimes(seconds).astype("datetime64[D]")
    return _as_numbers(dates - dates.astype("datetime64[M]").astype("datetime64[D]")) + 1.0


_TIME_FUNCTIONS: dict[str, Callable[[Float64Array], Float64Array]] = {
    "day": _day_of_month,
    "days": lambda seconds: np.floor(seconds / _DAY),
    "hour": lambda seconds: np.floor(seconds % _DAY / 3600),
    "minute": lambda seconds: np.floor(seconds % 3600 / 60),
    "month": lambda seconds: _months(seconds) % 12 + 1,
    "seconds": lambda seconds: seconds,
    # 1970 began on a Thursday.
    "weekday": lambda seconds: (np.floor(seconds / _DAY) + 3) % 7,
    "year": lambda seconds: np.floor(_months(seconds) / 12) + 1970,
}
_TO_SECONDS: dict[str, float] = {"from_days": _DAY, "from_milliseconds": 0.001, "from_seconds": 1}

_OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Mult: np.multiply,
    ast.Pow: np.power,
    ast.Sub: np.subtract,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Eq: np.equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.NotEq: np.not_equal,
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A function of variables; it goes to other processes as its text. NumPy warns of what is not finite.

    >>> parse_formula("min(x, 2) ^ 2 if x > 0 else -1", ["x"])({"x": np.array([1.0, 5.0, -3.0])})
    array([ 1.,  4., -1.])
    """

    text: str
    variables: tuple[str, ...]
    numbers: frozenset[str]
    """The variables that it uses as numbers."""

    times: frozenset[str]
    """Those that it uses as dates or times, which it takes in seconds since 1970; one may be both."""

    function: _Node

    def __call__(self, values: Variables) -> Float64Array:
        return np.asarray(self.function(values), np.float64)

    def __reduce__(self) -> tuple[Any, ...]:
        return parse_formula, (self.text, self.variables)


def time_key(name: str) -> str:
    return f"time of {name}"


def parse_formula(text: str, variables: Sequence[str]) -> Formula:
    """ValueError says what is not understood."""
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"the formula has {len(text)} characters; at most {_MAX_CHARACTERS} are read")
    compiler = _Compiler(tuple(variables))
    try:
        function = compiler.number(ast.parse(_as_python(text), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        cure = "; write c ? a : b as where(c, a, b)" if "?" in text else ""
        raise ValueError(f"'{text}' is not a formula{cure}") from error
    return Formula(text, tuple(variables), frozenset(compiler.numbers), frozenset(compiler.times), function)


def names_in(text: str) -> list[str]:
    """The names of a formula that are not called, each once: its variables, where no list says them."""
    try:
        nodes = list(ast.walk(ast.parse(_as_python(text), mode="eval")))
    except (SyntaxError, RecursionError, MemoryError):
        return []  # parse_formula says so
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and node not in called]
    names.sort(key=lambda node: node.col_offset)
    return list(dict.fromkeys(node.id for node in names))


def _as_python(text: str) -> str:
    """As other languages write powers and conditions."""
    source = text.strip()
    for other, python in (("^", "**"), ("&&", " and "), ("||", " or ")):
        source = source.replace(other, python)
    return source


class _Compiler:
    """Nodes of a syntax tree -> functions of the variables, with which of them are used, and as what."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self.numbers: set[str] = set()
        self.times: set[str] = set()

    def number(self, node: ast.expr) -> _Node:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                constant = np.float64(value)
                return lambda values: constant
            case ast.Name(id=name) if name in self.variables:
                self.numbers.add(name)
                return lambda values: values[name]
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._applied(np.negative, [operand])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._applied(lambda x: ~_is_true(x) + 0.0, [operand])
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                return self._applied(_OPERATORS[type(operator)], [left, right])
            case ast.BoolOp(op=operator, values=parts):
                combine = np.logical_and if isinstance(operator, ast.And) else np.logical_or
                return self._applied(
                    lambda *numbers: _folded(combine, [_is_true(x) for x in numbers]) + 0.0, parts
                )
            case ast.Compare(left=left, ops=operators, comparators=others) if all(
                type(operator) in _COMPARISONS for operator in operators
            ):
                compare = [_COMPARISONS[type(operator)] for operator in operators]
                return self._applied(lambda *numbers: _compared(compare, numbers), [left, *others])
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self._applied(FUNCTIONS["where"][1], [test, yes, no])
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._called(node, name, arguments)
        raise self._not_understood(node)

    def _called(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> _Node:
        if name in _TIME_FUNCTIONS:
            expected, function = 1, _TIME_FUNCTIONS[name]
        elif name in FUNCTIONS:
            expected, function = FUNCTIONS[name]
        else:
            raise self._not_understood(node)
        if expected == _ANY_NUMBER and len(arguments) < 2:
            raise ValueError(f"{name} takes 2 arguments or more, not {len(arguments)}")
        if expected not in (_ANY_NUMBER, len(arguments)):
            raise ValueError(f"{name} takes {expected} argument{'s' * (expected > 1)}, not {len(arguments)}")
        if name not in _TIME_FUNCTIONS:
            return self._applied(function, arguments)
        time = self._time(name, arguments[0])
        return lambda values: function(time(values))

    def _time(self, caller: str, node: ast.expr) -> _Node:
        match node:
            case ast.Name(id=name) if name in self.variables:
                self.times.add(name)
                return lambda values: values[time_key(name)]
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _TO_SECONDS:
                factor = _TO_SECONDS[name]
                return self._applied(lambda x: np.floor(x * factor), [argument])
        raise ValueError(
            f"{caller} takes a date or time, not '{ast.unparse(node)}': a variable, or what "
            f"{', '.join(_TO_SECONDS)} make of a number"
        )

    def _applied(self, function: Callable[..., Any], arguments: list[ast.expr]) -> _Node:
        compiled = [self.number(argument) for argument in arguments]
        return lambda values: function(*(argument(values) for argument in compiled))

    def _not_understood(self, node: ast.expr) -> ValueError:
        functions = sorted([*FUNCTIONS, *_TIME_FUNCTIONS, *_TO_SECONDS])
        known = ", ".join([*sorted(self.variables), *functions])
        if isinstance(node, ast.Name):
            return ValueError(f"'{node.id}' is not a variable; {hint(node.id, self.variables)}")
        operators = "+ - * / // % ^, comparisons, and or not, a if c else b"
        return ValueError(f"'{ast.unparse(node)}' is not understood; known: numbers, {operators}, {known}")


def _is_true(numbers: Any) -> Any:
    """Not 0, and there."""
    return (np.asarray(numbers) != 0) & ~np.isnan(numbers)


def _folded(function: Callable[..., Any], numbers: Any) -> Any:
    first, *others = numbers
    for other in others:
        first = function(first, other)
    return first


def _compared(compare: list[Callable[..., Any]], numbers: tuple[Any, ...]) -> Any:
    pairs = zip(compare, numbers, numbers[1:], strict=False)
    return _folded(np.logical_and, [each(left, right) for each, left, right in pairs]) + 0.0


def _as_datetimes(seconds: Float64Array) -> Any:
    there = np.isfinite(seconds)
    return np.where(there, np.nan_to_num(seconds).astype("datetime64[s]"), np.datetime64("NaT", "s"))


def _as_numbers(times: Any) -> Float64Array:
    return np.where(np.isnat(times), np.nan, times.astype(np.float64))
