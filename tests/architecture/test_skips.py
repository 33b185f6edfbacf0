"""In CI a skipped test fails, unless its file is listed."""

from pathlib import Path

import pytest

from tests.expected_skips import EXPECTED_SKIPS, fail_unexpected_skip

ROOT = Path(__file__).parents[2]


def skipped(nodeid: str) -> pytest.TestReport:
    reason = (nodeid, 1, "Skipped: no browser")
    return pytest.TestReport(nodeid, (nodeid, 1, "test"), {}, "skipped", reason, "call")


def test_a_skip_that_nobody_listed_fails() -> None:
    report = skipped("tests/end_to_end/test_report_page.py::test_every_chart[wide]")

    fail_unexpected_skip(report)

    assert report.failed
    assert str(report.longrepr).startswith("Skipped: no browser: make it run in CI")


def test_a_listed_one_stays_a_skip() -> None:
    report = skipped(f"{next(iter(EXPECTED_SKIPS))}::test_anything")

    fail_unexpected_skip(report)

    assert report.skipped


def test_every_listed_file_is_there() -> None:
    assert [name for name in EXPECTED_SKIPS if not (ROOT / name).is_file()] == []
