"""report.html in a real browser: every chart has data, values show under the pointer, the console is clean.

Needs playwright and a Chromium: one named chromium or google-chrome on the PATH, or playwright's own. Without them
these tests are skipped; tests/observe/report looks at the page without a browser.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.observe.report.page import write_report
from tests.end_to_end.conftest import Workplace
from tests.observe.report.run_folders import EARLY_END, START, STEPS, write_profile, write_run

playwright = pytest.importorskip("playwright.sync_api")

WIDE, PHONE = 1200, 390


@dataclass
class Visit:
    """A page as a reader has it in front of them, and what its console and its network saw."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path, width: int, scheme: str = "light") -> None:
        """Load a file, and listen."""
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size({"width": width, "height": 800})
        self.page.goto(path.resolve().as_uri())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium without a window."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with playwright.sync_playwright() as engine:
        try:
            started = engine.chromium.launch(executable_path=found, args=["--no-sandbox"], timeout=120_000)
        except playwright.Error as error:
            pytest.skip(f"no Chromium could be started: {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """A fresh page, without a network."""
    context = browser.new_context(offline=True)
    context.set_default_timeout(120_000)
    yield Visit(context.new_page())
    context.close()


def test_every_chart_of_a_trained_run_has_data(visit: Visit, trained: Workplace, tmp_path: Path) -> None:
    report = write_report(trained.folder / "run", output=tmp_path / "report.html")

    visit.open(report, WIDE)

    assert visit.page.locator("figcaption").all_inner_texts() == [
        "Loss",
        "auc",
        "log_loss",
        "Learning rate: sparse",
        "Learning rate: dense",
        "Calibration",
        "Throughput",
        "Waiting against computing",
        "Processor",
        "Reading from disk",
        "Memory",
        "Memory by stage",
    ]
    for chart in visit.page.locator("figure[data-chart]").all():
        curves = chart.locator("polyline").evaluate_all(
            "lines => lines.map(line => line.points.numberOfItems)"
        )
        assert curves, "a chart without a curve"
        assert all(count >= 1 for count in curves)
        assert chart.locator("polyline, circle").first.bounding_box()["width"] > 0
    assert visit.page.locator("figure.bars rect.bar").count() >= 10
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith("file:")] == []


def test_the_data_profile_of_a_trained_run_is_read_without_a_click(
    visit: Visit, trained: Workplace, tmp_path: Path
) -> None:
    visit.open(write_report(trained.folder / "run", output=tmp_path / "report.html"), WIDE)

    table = visit.page.locator(".columns")
    rows = {line[0]: line for line in map(cells, table.locator("tbody tr").all())}
    assert table.bounding_box()["height"] > 100
    assert list(rows) == ["click", "user_id", "item_id", "category", "price"]
    assert rows["click"][2] == "label"
    assert rows["category"][1:4] == ["string", "id_feature category", "0"]
    assert rows["price"][3].endswith("%")  # some prices are missing
    assert visit.complaints == []


def cells(line: Any) -> list[str]:
    """The texts of a line of a table."""
    found: list[str] = line.locator("th, td").all_inner_texts()
    return found


def test_the_values_under_the_pointer_are_shown(visit: Visit, tmp_path: Path) -> None:
    visit.open(write_report(write_run(tmp_path / "one")), WIDE)
    chart = visit.page.locator("figure[data-chart]").first
    box = chart.locator("svg").bounding_box()

    chart.locator("svg").hover(position={"x": box["width"] - 20, "y": 100})

    assert chart.locator(".tip").inner_text().splitlines() == [
        "step 15",
        "train",
        "0.55",
        "eval binary_cross_entropy",
        "0.5",
    ]
    assert visit.complaints == []


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_the_step_that_a_run_went_back_to_is_seen_in_its_charts(
    visit: Visit, tmp_path: Path, width: int
) -> None:
    visit.open(write_report(write_run(tmp_path / "one", log=[START, *STEPS, EARLY_END])), width)

    assert (
        visit.page.locator(".outcome")
        .inner_text()
        .startswith("one stopped early at step 15: auc got no better")
    )
    for caption in ("Loss", "auc"):
        chart = visit.page.locator("figure[data-chart]", has=visit.page.get_by_text(caption, exact=True))
        assert chart.locator(".legend").inner_text().endswith("step 10, restored")
        mark, dot = chart.locator("line.mark").bounding_box(), chart.locator("circle").first.bounding_box()
        assert mark["height"] > 100
        assert mark["x"] == pytest.approx(dot["x"] + dot["width"] / 2, abs=2)  # the evaluation of step 10
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_nothing_is_wider_than_the_screen(visit: Visit, tmp_path: Path, width: int, scheme: str) -> None:
    one, two = (write_profile(write_run(tmp_path / name)) for name in ("one", "two"))

    visit.open(write_report(one, [two]), width, scheme)
    for summary in visit.page.get_by_text("Data profile of").all():
        summary.click()

    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    brightness = visit.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] * 1")
    assert (brightness < 64) == (scheme == "dark")
    assert visit.complaints == []


def test_a_chart_is_read_with_the_arrow_keys_too(visit: Visit, tmp_path: Path) -> None:
    visit.open(write_report(write_run(tmp_path / "one")), WIDE)
    chart = visit.page.locator("figure[data-chart]").first

    chart.focus()
    chart.press("ArrowRight")
    chart.press("ArrowRight")

    assert chart.locator(".tip").inner_text().startswith("step 10")
