"""What a command does with what goes wrong inside it."""

import sys

import pytest
import typer

from penstock.cli.command import Debug, one_line_errors
from penstock.config.errors import DataError


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (DataError("a.parquet: is empty"), "error: a.parquet: is empty", 1),
        (
            PermissionError(13, "Permission denied", "run/log.jsonl"),
            "error: run/log.jsonl: Permission denied",
            1,
        ),
        (OSError(28, "No space left on device"), "error: No space left on device", 1),
        (KeyboardInterrupt(), "error: stopped", 130),
        (
            ZeroDivisionError("by zero"),
            "error: unexpected ZeroDivisionError: by zero (this is a defect of penstock; run again with --debug)",
            70,
        ),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(error, line, code, capsys):
    with pytest.raises(typer.Exit) as left, one_line_errors():
        raise error

    assert capsys.readouterr().err == f"{line}\n"
    assert left.value.exit_code == code


def test_a_reader_of_the_output_that_goes_away_is_no_error(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)

    with pytest.raises(typer.Exit) as left, one_line_errors():
        raise BrokenPipeError

    sys.stdout.close()
    assert left.value.exit_code == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error", [DataError("a.parquet: is empty"), OSError(28, "full"), ZeroDivisionError()]
)
def test_debug_lets_the_error_through(error, monkeypatch):
    monkeypatch.setattr(Debug, "shown", True)

    with pytest.raises(type(error)), one_line_errors():
        raise error
