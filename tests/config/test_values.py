"""Values that many sections share."""

from pathlib import Path
from typing import Any

import pytest

from penstock.config.errors import ConfigError
from penstock.config.load import load_section
from penstock.config.section import Paths, Section


class Reading(Section):
    """A section with paths."""

    files: Paths = ""


@pytest.mark.parametrize(
    ("written", "paths"), [("a.csv", "a.csv"), ("a, b/*", "a, b/*"), (["a", "b/*"], "a,b/*"), ([], "")]
)
def test_paths_are_a_text_or_a_list(written: Any, paths: str):
    assert Reading.model_validate({"files": written}).files == paths


def test_a_list_of_something_else_is_told(tmp_path: Path):
    (tmp_path / "run.yaml").write_text("files: [a.csv, 3]\n")

    with pytest.raises(ConfigError, match=r"files: 3 in the list is no path"):
        load_section(Reading, tmp_path / "run.yaml")


def test_editors_know_both_forms():
    forms = Reading.model_json_schema()["properties"]["files"]["anyOf"]

    assert [form["type"] for form in forms] == ["string", "array"]
