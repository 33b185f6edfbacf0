"""docs/library.md shows what really happens."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "library.md"


def test_every_example_prints_what_the_page_shows():
    examples = "\n".join(
        re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
    page = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []

    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=report.append)

    assert results.attempted > 15
    assert results.failed == 0, "".join(report)
