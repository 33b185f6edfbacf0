"""`penstock doctor`: every finding, and an exit code for scripts."""

import pytest

from penstock.runtime import doctor
from penstock.runtime.doctor import Finding
from tests.cli.desk import Desk

GOOD, BAD = Finding("python", "3.11.2"), Finding("torch", "is not installed", fix="make setup")


@pytest.mark.parametrize(("findings", "code"), [([GOOD], 0), ([GOOD, BAD], 1)])
def test_tells_every_finding(desk: Desk, monkeypatch: pytest.MonkeyPatch, findings: list[Finding], code: int):
    monkeypatch.setattr(doctor, "diagnose", lambda: findings)

    done = desk.penstock("doctor")

    assert done.stdout == "".join(f"{finding}\n" for finding in findings)
    assert done.exit_code == code
