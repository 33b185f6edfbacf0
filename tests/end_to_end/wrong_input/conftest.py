"""Desks to make mistakes at, and what the commands print then: tests/golden/expected/refusals.json holds the texts."""

import re
from collections.abc import Callable

import pytest

from tests.cli.conftest import desk, trained_desk, trained_run
from tests.cli.desk import Desk
from tests.end_to_end.wrong_input.mistake import Wrong
from tests.golden.expected_files import expected_json

__all__ = ["desk", "trained_desk", "trained_run"]

MEASURED = re.compile(r"\b[\d.]+[KMG]iB\b")
"""Sizes in the texts about limits: some are measured on this machine."""

Refused = Callable[[Desk, Wrong], None]


@pytest.fixture
def assert_expected(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare what a command printed with the text of this case."""
    case = request.node.name.removeprefix(request.node.originalname).strip("[]")
    key = ": ".join(filter(None, (request.path.stem, request.node.originalname, case)))

    def compare(printed: str) -> None:
        found = MEASURED.sub("<size>", printed) if request.path.stem == "test_limits" else printed
        assert [found] == expected_json("refusals.json", {key: [found]})[key]

    return compare


@pytest.fixture
def assert_refused(assert_expected: Callable[[str], None]) -> Refused:
    """The command ends with the expected text alone and exit code 1, and leaves the folder as it found it."""

    def make(desk: Desk, wrong: Wrong) -> None:
        desk.write_run(*wrong.run)
        if wrong.clicks:
            desk.write_clicks(**wrong.clicks)
        for name, content in wrong.files.items():
            desk.write(name, content)
        wrong.prepare(desk.folder)
        before = desk.content()

        done = desk.penstock(*wrong.command.split())

        assert_expected(done.stderr)
        assert done.stdout == ""
        assert done.exit_code == 1
        assert desk.content() == before

    return make
