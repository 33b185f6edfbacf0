"""One line when the user is wrong, a traceback only when asked for."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from penstock.config.errors import ConfigError, PenstockError
from penstock.runtime.interrupts import Stopped

EXIT_WRONG = 1
EXIT_CRASH = 70
EXIT_STOPPED = 130


class Debug:
    """Whether tracebacks are shown; set once by the --debug option of the program."""

    shown = False


@contextmanager
def one_line_errors(run_file: Path | None = None) -> Iterator[None]:
    """Turn what goes wrong inside the block into one line and an exit code.

    Problems of the run file that show only when it is used are told with its name too.
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
        fail(str(with_source(error, run_file)), EXIT_WRONG)
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


def with_source(error: PenstockError, run_file: Path | None) -> PenstockError:
    """The same error, with the run file in front where it speaks of keys and does not say of which file."""
    if not isinstance(error, ConfigError) or error.source or run_file is None:
        return error
    if not all(problem.path for problem in error.problems):
        return error
    return ConfigError(error.problems, str(run_file))


def fail(message: str, exit_code: int) -> None:
    """Print the line and leave."""
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(exit_code)
