"""A wrong word on the command line is one line too."""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

UsageError: Any = typer.BadParameter.__mro__[1]
"""What unknown commands and options, missing and wrong values have in common; typer has no public name for it."""


DEBUG = "--debug"


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
    message = str(error.format_message()).rstrip(".")
    command = error.ctx.command_path if error.ctx is not None else "penstock"
    return f"{message[:1].lower()}{message[1:]} (see {command} --help)"
