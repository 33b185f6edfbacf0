"""The examples of docs/store.md and docs/tfrecord.md print what the pages show."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["store.md", "tfrecord.md"])
def test_the_examples_of_the_page_are_true(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / name).read_text()
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    page = doctest.DocTestParser().get_doctest(examples, {}, name, None, 0)
    report: list[str] = []

    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=report.append)

    assert results.attempted > 5
    assert not results.failed, "".join(report)
