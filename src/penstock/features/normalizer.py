"""The normalizer option of number features: `method=NAME,option=value,...`.

| method     | options (default)                | x ->                                    |
|------------|----------------------------------|-----------------------------------------|
| log10      | threshold (1e-10), default (-10) | log10(x) if x > threshold, else default |
| zscore     | mean, standard_deviation         | (x - mean) / standard_deviation         |
| minmax     | min, max                         | (x - min) / (max - min)                 |
| expression | expr                             | the formula over x (features.formula)   |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.config.errors import hint
from penstock.features.formula import parse_formula
from penstock.features.values import Float64Array

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
        formula = parse_formula(formula_text, ["x"])
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
