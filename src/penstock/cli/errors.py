"""One line when the user is wrong, a traceback only when asked for."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from penstock.config.errors import PenstockError

EXIT_WRONG = 1
EXIT_CRASH = 70


class Debug:
    """Whether tracebacks are shown; set once by the --debug option of the program."""

    shown = False


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what goes wrong inside the block into one line and an exit code."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        fail("stopped", 130)
    except BrokenPipeError:
        # The reader of our output went away (for example `| head`): not an error of ours.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        raise typer.Exit(0) from None
    except PenstockError as error:
        if Debug.shown:
            raise
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


def fail(message: str, exit_code: int) -> None:
    """Print the line and leave."""
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(exit_code)
