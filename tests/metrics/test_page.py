"""docs/metrics.md shows what really happens."""

import doctest
import re
from pathlib import Path

from benchmarks.measuring import decay_chart
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


def test_the_chart_shows_what_the_metrics_give():
    assert decay_chart.PICTURE.read_text() == decay_chart.draw() + "\n"
    assert f"({decay_chart.PICTURE.relative_to(PAGE.parent)})" in PAGE.read_text()


def test_the_calm_curve_of_the_chart_is_behind_the_others():
    calm, sooner, often = (decay_chart.followed(*setting)[-1][1] for setting in decay_chart.SETTINGS)

    assert calm > 0.23
    assert max(sooner, often) < 0.21
