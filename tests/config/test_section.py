"""What a section takes, and what its fields report about themselves."""

from typing import Any

import pytest

from penstock.config.load import Notice, notice_lines, notices, parse_section
from penstock.config.section import Paths, Section
from tests.config.toy import Run


class Reading(Section):
    files: Paths = ""


@pytest.mark.parametrize(
    ("written", "paths"), [("a, b/*", "a, b/*"), (["a", "b/*"], "a,b/*"), ([], "")], ids=str
)
def test_paths_are_a_string_or_a_list(written: Any, paths: str):
    assert Reading.model_validate({"files": written}).files == paths


def test_written_fields_with_markers_are_listed():
    text = "data_config: {quota: x, fg_encoded: true}\ntrain_config: {mixed_precision: BF16}"
    found = parse_section(Run, text, "yaml").notices

    assert list(notices(Run())) == []
    assert found == [
        Notice("legacy", ("data_config", "fg_encoded"), "fg_mode"),
        Notice("ignored", ("data_config", "quota"), "Penstock has no quotas"),
        Notice("later", ("train_config", "mixed_precision"), "mixed precision is not available yet"),
    ]
    assert notice_lines(found) == [
        "data_config.fg_encoded: old name, use fg_mode instead",
        "data_config.quota: ignored (Penstock has no quotas)",
    ]
