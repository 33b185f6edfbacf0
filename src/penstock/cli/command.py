"""What all commands share: options, and what they say when something is wrong.

That is one line on stderr and an exit code; a traceback only with --debug.
"""

import json
import logging
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from penstock.config.errors import ConfigError, PenstockError
from penstock.runtime.world import Stopped

if TYPE_CHECKING:
    from penstock.run.run_config import RunConfig

logger = logging.getLogger(__name__)

EXIT_WRONG = 1
EXIT_CRASH = 70
EXIT_STOPPED = 130

# Whoever loads the run file says why it cannot be read, better than the command line would: readable=False.
RunFile = Annotated[
    Path, typer.Argument(metavar="RUN", readable=False, help="The run file: YAML, JSON or protobuf text.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a key of the run file; may be repeated."),
]
EditJson = Annotated[
    str | None,
    typer.Option("--edit_config_json", metavar="JSON", help="Changes as one JSON object of path: value."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Keys that have no effect here are errors.")]
ModelDir = Annotated[str | None, typer.Option("--model_dir", help="Where everything of the run goes.")]
TrainInput = Annotated[str | None, typer.Option("--train_input_path", help="Training files.")]
EvalInput = Annotated[str | None, typer.Option("--eval_input_path", help="Evaluation files.")]
Memory = Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Memory limit, such as 4GiB.")]
Epochs = Annotated[
    int | None, typer.Option("--epochs", min=1, help="Times over the data (train_config.num_epochs).")
]
LearningRate = Annotated[
    float | None,
    typer.Option("--lr", help="Learning rate of both optimizers, that of the tables and the dense one."),
]
BatchSize = Annotated[
    int | None, typer.Option("--batch_size", min=1, help="Rows per batch (data_config.batch_size).")
]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines instead of a live bar.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also show the memory of each stage, and every result.")
]
CheckpointPath = Annotated[
    str | None,
    typer.Option(
        "--checkpoint_path",
        metavar="PATH",
        help="A checkpoint, 'latest' or 'best' (default: latest), or RUN, RUN/best of another run.",
    ),
]


def load(
    run_file: Path,
    keys: Mapping[str, Any],
    sets: Sequence[str] | None = None,
    edit_json: str | None = None,
    strict: bool = False,
    learning_rate: float | None = None,
) -> "RunConfig":
    """The run file as the command line wants it: options that are keys first, then edits in the order given.

    `learning_rate` is that of whichever optimizers the run then has.
    Imports are here, so that `--help` answers at once.
    """
    from penstock.run.run_config import load_run

    edits: list[Any] = [(key, value) for key, value in keys.items() if value is not None]
    edits += sets or ()
    if edit_json is not None:
        try:
            found = json.loads(edit_json)
        except json.JSONDecodeError as error:
            raise ConfigError(f"--edit_config_json: is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise ConfigError("--edit_config_json: expected one JSON object of path: value")
        edits += found.items()
    run = load_run(run_file, edits, strict=strict)
    if learning_rate is None or run.train_config is None:
        return run
    from penstock.config.load import apply_edits

    train = run.train_config
    chosen = [
        (f"train_config.{key}", options.chosen("optimizer"))
        for key, options in (
            ("sparse_optimizer", train.sparse_optimizer),
            ("dense_optimizer", train.dense_optimizer),
        )
        if options is not None
    ]
    return apply_edits(run, [(f"{key}.{each[0]}.lr", learning_rate) for key, each in chosen if each])


def announce(command: str, run_file: Path) -> None:
    """Say what the first seconds go to, before the packages that need torch are imported.

    Arrow is to allocate by malloc in all its parts (`run.session.one_allocator`), which it decides when it is loaded.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if "torch" not in sys.modules:
        logger.info("%s: %s is read; importing torch", command, run_file)


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
    except Exception as error:
        if Debug.shown:
            raise
        if isinstance(error, PenstockError):
            problems = error.problems if isinstance(error, ConfigError) and not error.source else []
            if run_file is not None and problems and all(problem.path for problem in problems):
                error = ConfigError(problems, str(run_file))
            fail(str(error), EXIT_WRONG)
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            fail(f"{where}{error.strerror or error}", EXIT_WRONG)
        kind = type(error).__name__
        fail(f"unexpected {kind}: {error} (this is a defect of penstock; run again with --debug)", EXIT_CRASH)


def for_stderr(text: str) -> str:
    """One line for files and pipes; on a terminal folded between words, which are not broken."""
    if not sys.stderr.isatty() or "\n" in text:
        return text
    width = os.get_terminal_size(sys.stderr.fileno()).columns
    return textwrap.fill(
        text, max(width, 40), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def fail(message: str, exit_code: int) -> NoReturn:
    print(for_stderr(f"error: {message}"), file=sys.stderr)
    raise typer.Exit(exit_code)
