"""The tests that CI may skip, each with its reason; any other skip is a failure there."""

import pytest

EXPECTED_SKIPS = {
    "tests/end_to_end/test_init.py": "the data are not part of the repository",
    "tests/end_to_end/test_real_data.py": "the data are not part of the repository",
    "tests/run/test_schema_names.py": "the list of names is not part of the repository",
    "tests/runtime/test_checksums.py": "a processor may have no crc32c instruction",
    "tests/prep/merge/test_disk_full.py": "a container may not be allowed to mount a file system",
}


def fail_unexpected_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure, unless its file is listed."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    if report.nodeid.partition("::")[0] not in EXPECTED_SKIPS:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = (
            f"{reason}: make it run in CI, or list its file with the reason in tests/expected_skips.py"
        )
