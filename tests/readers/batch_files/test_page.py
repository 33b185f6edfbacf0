"""The examples of docs/store.md are run."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "store.md"


def test_the_examples_of_the_page_are_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    page = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)

    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=report.append)

    assert results.attempted > 5
    assert not results.failed, "".join(report)
