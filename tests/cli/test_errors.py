"""What a command does with what goes wrong inside it."""

import os
import pty
import subprocess
import sys
import termios

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


def test_on_a_terminal_long_lines_are_folded_between_words(tmp_path):
    """Also warnings; in a pipe each is one line."""
    (tmp_path / "a.csv").write_text("1,2.5\n3,4.5\n")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [sys.executable, "-m", "penstock", "inspect", "a.csv"]

    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs, check=False)

    os.close(theirs)
    lines = os.read(ours, 4096).decode().splitlines()
    assert lines[:2] == [
        "warning: a.csv: the first row is taken for names, but 1, 2.5 are numbers; if it",
        "  is data, read without a header",
    ]


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
