"""The program `penstock`: its commands, and what they share."""

import logging
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock.cli.command import Debug, for_stderr
from penstock.cli.data_commands import inspect, merge, prep, rewrite, sample_data, vocab
from penstock.cli.look_commands import check, demo, doctor, features, init, plan, report, schema
from penstock.cli.train_commands import evaluate, predict, train, train_eval

UsageError: Any = typer.BadParameter.__mro__[1]
"""What unknown commands and options, missing and wrong values have in common; typer has no public name for it."""

_DEBUG = "--debug"
_EXPECTED_NUMBERS = {"greater_than_equal": "{ge} or more", "int_parsing": "a whole number"}
"""What an option takes, by the kind of error that its value gives."""


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
    """The message, and the traceback of what it comes from; a warning begins with that word."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        warned = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        return for_stderr(warned + text)


app = typer.Typer(
    name="penstock",
    help="Carry training data from disk to a trained model inside a memory limit.",
    cls=Program,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={
        # --memory_limit and --memory-limit are the same option.
        "token_normalize_func": lambda word: word.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
    },
)


@app.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Carry training data from disk to a trained model inside a memory limit."""
    if version:
        print(f"penstock {installed_version('penstock')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise UsageError("Missing command.", context)
    Debug.shown = debug
    # What penstock's packages log are lines on stderr; what others warn of their own future is hidden.
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
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    logger.propagate = False
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)


app.command()(train)
app.command("train-eval", hidden=True)(train_eval)
app.command("eval")(evaluate)
app.command()(predict)
app.command()(init)
app.command()(check)
app.command()(plan)
app.command()(features)
app.command()(inspect)
app.command()(report)
app.command()(prep)
app.command()(merge)
app.command()(vocab)
app.command()(rewrite)
app.command("sample-data")(sample_data)
app.command()(schema)
app.command()(doctor)
app.command(hidden=True)(demo)


def main() -> None:
    """The console script, called `penstock` also where it runs as `python -m penstock`."""
    app(prog_name="penstock")
