"""Something a user did wrong, and the line that tells so: the form of the cases beside this file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.desk import Change, Desk


@dataclass(frozen=True)
class Wrong:
    """One mistake: pieces of the run file, columns of the data, or files, and the one line it gives."""

    what: str
    line: str
    run: tuple[Change, ...] = ()
    clicks: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    prepare: Callable[[Path], object] = lambda folder: None
    command: str = "train run.yaml"

    def __str__(self) -> str:
        return self.what


def assert_told_in_one_line(desk: Desk, wrong: Wrong) -> None:
    """The command ends with this line alone and exit code 1, and leaves the folder as it found it."""
    desk.write_run(*wrong.run)
    if wrong.clicks:
        desk.write_clicks(**wrong.clicks)
    for name, content in wrong.files.items():
        desk.write(name, content)
    wrong.prepare(desk.folder)
    before = desk.content()

    done = desk.penstock(*wrong.command.split())

    assert done.stderr == f"error: {wrong.line}\n"
    assert done.stdout == ""
    assert done.exit_code == 1
    assert desk.content() == before
