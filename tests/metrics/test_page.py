"""docs/metrics.md shows what really happens."""

import doctest
import re
from pathlib import Path

from penstock.metrics.wiring import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_example_prints_what_the_page_shows():
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    page = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []

    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=report.append)

    assert results.attempted == 12
    assert results.failed == 0, "".join(report)


def test_every_metric_has_a_row():
    rows = re.findall(r"^\| `(\w+)` \|.*\| `[a-z].*` \|$", PAGE.read_text(), re.MULTILINE)

    assert sorted(rows) == sorted(METRICS)
