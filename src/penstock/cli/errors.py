"""What a command says when something is wrong: one line on stderr and an exit code; a traceback only with --debug."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from penstock.config.errors import ConfigError, PenstockError
from penstock.runtime.world import Stopped

EXIT_WRONG = 1
EXIT_CRASH = 70
EXIT_STOPPED = 130

UsageError: Any = typer.BadParameter.__mro__[1]
"""What unknown commands and options, missing and wrong values have in common; typer has no public name for it."""

_DEBUG = "--debug"
_EXPECTED_NUMBERS = {"greater_than_equal": "{ge} or more", "int_parsing": "a whole number"}
"""What an option takes, by the kind of error that its value gives."""


class Debug:
    """Whether tracebacks are shown; set once by the --debug option of the program."""

    shown = False


@contextmanager
def one_line_errors(run_file: Path | None = None) -> Iterator[None]:
    """Turns what goes wrong inside the block into one line and an exit code.

    Problems of the run file that show only when it is used are reported with its name too.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except (KeyboardInterrupt, Stopped) as stopped:
        fail(str(stopped) or "stopped", getattr(stopped, "exit_code", EXIT_STOPPED))
    except BrokenPipeError:
        # The reader of our output went away (for example `| head`): not an error of ours.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        raise typer.Exit(0) from None
    except PenstockError as error:
        if Debug.shown:
            raise
        problems = error.problems if isinstance(error, ConfigError) and not error.source else []
        if run_file is not None and problems and all(problem.path for problem in problems):
            error = ConfigError(problems, str(run_file))
        fail(str(error), EXIT_WRONG)
    except OSError as error:
        if Debug.shown:
            raise
        where = f"{error.filename}: " if error.filename else ""
        fail(f"{where}{error.strerror or error}", EXIT_WRONG)
    except Exception as error:
        if Debug.shown:
            raise
        kind = type(error).__name__
        fail(f"unexpected {kind}: {error} (this is a defect of penstock; run again with --debug)", EXIT_CRASH)


def fail(message: str, exit_code: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(exit_code)


class Program(TyperGroup):
    """The commands; without any, their list."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        if _DEBUG in words:
            # One may add it behind a command that failed, where it comes to mind.
            words = [_DEBUG, *(word for word in words if word != _DEBUG)]
        try:
            code = super().main(words, standalone_mode=False, **extra)
        except UsageError as error:
            print(f"error: {_usage_line(error)}", file=sys.stderr)
            code = error.exit_code
        if standalone_mode:
            sys.exit(code)
        return code


def _usage_line(error: Any) -> str:
    from pydantic import ValidationError

    message = str(error.format_message()).rstrip(".")
    if isinstance(error.__cause__, ValidationError):
        [problem, *_] = error.__cause__.errors()
        if problem["type"] in _EXPECTED_NUMBERS:  # the option, its value, and which numbers it takes
            expected = _EXPECTED_NUMBERS[problem["type"]].format(**problem.get("ctx", {}))
            value, option = str(problem["input"]), max(error.param.opts, key=len)
            shown = value if value.removeprefix("-").isdecimal() else repr(value)
            message = f"{option}: is {shown}; give {expected}"
    command = error.ctx.command_path if error.ctx is not None else "penstock"
    return f"{message[:1].lower()}{message[1:]} (see {command} --help)"


class _Line(logging.Formatter):
    """The message alone; a warning begins with that word."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        return f"{record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


def show_messages() -> None:
    """Shows what penstock's packages log as lines on stderr, and hides what others warn of their own future."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        """Each message once: training and evaluation find the same things."""
        known = len(seen)
        seen.add(record.getMessage())
        return len(seen) > known

    handler = logging.StreamHandler()
    handler.setFormatter(_Line())
    handler.addFilter(is_new)
    logger = logging.getLogger("penstock")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)
