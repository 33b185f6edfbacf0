"""docs/tfrecord.md shows what really happens."""

import doctest
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tfrecord.md"


def test_every_example_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    page = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []

    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=report.append)

    assert results.attempted == 13
    assert results.failed == 0, "".join(report)
