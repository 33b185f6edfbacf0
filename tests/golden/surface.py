"""What users of the library and of the command see, as text in which no module name appears: modules may move."""

import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

import penstock
from penstock.cli.app import app

NOT_CALLED = {"Dataset", "RunConfig"}
"""Datasets come from functions; the keys of a run are in the schema."""

OPERATORS = ("__call__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__")
PLAIN = (str, int, float, tuple, type(None))
QUALIFIER = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")


def command_output(*words: str) -> str:
    """What a command prints, at a width of 100 and without colours."""
    done = CliRunner(env={"COLUMNS": "100", "TERM": "dumb"}).invoke(app, words, prog_name="penstock")
    assert done.exit_code == 0, done.output
    return done.stdout


def every_help() -> str:
    """The help of the program and of each command, hidden ones included."""
    commands = sorted(typer.main.get_command(app).commands)
    return "\n".join(
        f"$ penstock {' '.join(words)}\n{command_output(*words)}"
        for words in (["--help"], *([command, "--help"] for command in commands))
    )


def public_names() -> str:
    """Every public name with its signature; classes with their public methods and properties. How metrics are made."""
    lines = [line for name in sorted(penstock.__all__) for line in _lines_of(name)]
    metrics = [(name, getattr(penstock.metrics, name)) for name in sorted(penstock.metrics.__all__)]
    lines += [f"metrics.{name}{_signature(made)}" for name, made in metrics if hasattr(made, "compute")]
    return "".join(f"{line}\n" for line in lines)


def _lines_of(name: str) -> Iterator[str]:
    public = getattr(penstock, name)
    if not inspect.isclass(public):
        yield f"{name}{_signature(public)}"
        return
    parents = ", ".join(parent.__name__ for parent in public.__bases__ if parent is not object)
    yield f"class {name}({parents})" if parents else f"class {name}"
    if name not in NOT_CALLED and not issubclass(public, Exception):
        yield f"    {name}{_signature(public)}"
    members = {
        member: value
        for parent in reversed(public.__mro__)
        if parent.__module__.startswith("penstock")
        for member, value in vars(parent).items()
        if not member.startswith("_") or member in OPERATORS
    }
    for member, value in sorted(members.items()):
        yield from _member_lines(member, value)


def _member_lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, property):
        yield f"    {name} -> {_annotation(inspect.signature(value.fget).return_annotation)}  (property)"
    elif isinstance(value, classmethod | staticmethod):
        yield f"    {name}{_signature(value.__func__)}  ({type(value).__name__})"
    elif inspect.isfunction(value):
        yield f"    {name}{_signature(value)}"


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [_with_bare_names(parameter) for parameter in signature.parameters.values()]
    plain = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    returned = signature.return_annotation
    return str(plain) if returned is signature.empty else f"{plain} -> {_annotation(returned)}"


def _with_bare_names(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter as it is shown: defaults that are not plain values become `...`."""
    annotation, default = parameter.annotation, parameter.default
    if annotation is not parameter.empty:
        annotation = _Bare(_annotation(annotation))
    if isinstance(default, enum.Enum):
        default = default.value
    if default is not parameter.empty and not isinstance(default, PLAIN):
        default = ...
    return parameter.replace(annotation=annotation, default=_Bare("...") if default is ... else default)


def _annotation(annotation: Any) -> str:
    """An annotation by bare names: `Path`, not `pathlib.Path`."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return QUALIFIER.sub("", text).replace("'", "")


class _Bare(str):
    """A string that shows itself without quotes, also as an annotation."""

    def __repr__(self) -> str:
        return str(self)
