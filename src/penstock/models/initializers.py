"""Initial values of embedding tables, written in the run file as a call: `nn.init.uniform_,a=-0.01,b=0.01`.

The text is read, never evaluated: the function must be one of INITIALIZERS and its arguments numbers.
"""

import ast
import inspect
from collections.abc import Callable
from functools import partial

import torch

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint

Initializer = Callable[[torch.Tensor], torch.Tensor]

INITIALIZERS = (
    "constant_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
)
"""The functions of torch.nn.init that a run file may name."""

DEFAULT_INIT = "nn.init.normal_,std=0.01"
"""Small beside what is learned, so that a row seen rarely or never adds little noise."""

DEFAULT_WIDE_INIT = "nn.init.zeros_"
"""A wide part is linear: it needs no noise to start from, and a row never seen adds nothing."""


def parse_initializer(text: str, path: str) -> Initializer:
    """The initialiser that a text names; `path` is the place in the run file, for the message."""
    name, *arguments = (part.strip() for part in text.split(","))
    short_name = name.removeprefix("torch.").removeprefix("nn.init.")
    if short_name not in INITIALIZERS:
        raise ConfigError.at(path, f"'{name}' is not an initialiser; {hint(short_name, INITIALIZERS)}")
    function = getattr(torch.nn.init, short_name)
    known = [
        argument
        for argument in inspect.signature(function).parameters
        if argument not in ("tensor", "generator")
    ]
    return partial(function, **dict(_argument(argument, short_name, known, path) for argument in arguments))


def _argument(text: str, function: str, known: list[str], path: str) -> tuple[str, float | str]:
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator or name not in known:
        raise ConfigError.at(path, f"{function} has no argument '{name}'; write {_usage(function, known)}")
    try:
        number = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ConfigError.at(path, f"{name} of {function} is '{value}', not a number")
    return name, number


def _usage(function: str, known: list[str]) -> str:
    return ",".join([f"nn.init.{function}", *(f"{argument}=..." for argument in known)])
