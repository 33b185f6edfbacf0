"""A wrong word on the command line is one line too."""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

UsageError: Any = typer.BadParameter.__mro__[1]
"""What unknown commands and options, missing and wrong values have in common; typer has no public name for it."""


DEBUG = "--debug"

WANTED_NUMBERS = {"greater_than_equal": "{ge} or more", "int_parsing": "a whole number"}
"""What an option takes, by the kind of error that its value gives."""


class Program(TyperGroup):
    """The commands; without any, their list."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and leave with an exit code."""
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        if DEBUG in words:
            # One may add it behind a command that failed, where it comes to mind.
            words = [DEBUG, *(word for word in words if word != DEBUG)]
        try:
            code = super().main(words, prog_name, complete_var, False, windows_expand_args, **extra)
        except UsageError as error:
            print(f"error: {usage_line(error)}", file=sys.stderr)
            code = error.exit_code
        if standalone_mode:
            sys.exit(code)
        return code


def usage_line(error: Any) -> str:
    """What is wrong, and where the right words are."""
    message = wrong_number(error) or str(error.format_message()).rstrip(".")
    command = error.ctx.command_path if error.ctx is not None else "penstock"
    return f"{message[:1].lower()}{message[1:]} (see {command} --help)"


def wrong_number(error: Any) -> str | None:
    """The option, its value, and which numbers it takes; None where the error is another."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return None
    [problem, *_] = error.__cause__.errors()
    wanted = WANTED_NUMBERS.get(problem["type"])
    if wanted is None:
        return None
    value, option = str(problem["input"]), max(error.param.opts, key=len)
    shown = value if value.removeprefix("-").isdecimal() else repr(value)
    return f"{option}: is {shown}; give {wanted.format(**problem.get('ctx', {}))}"
