"""The parts of a page: present where the records hold them, absent otherwise."""

import re
from pathlib import Path

import pytest

from penstock.pipeline.report.page import page_of
from penstock.pipeline.report.run_record import read_run, read_runs
from penstock.pipeline.report.writing import try_to_write_report, write_report
from tests.pipeline.report.run_folders import END, EVALUATIONS, RUN_FILE, START, STEPS, write_run


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>([^<]*)</h2>", page)


def captions(page: str) -> list[str]:
    return re.findall(r"<figcaption>([^<]*)</figcaption>", page)


def test_the_page_of_a_run(tmp_path: Path) -> None:
    page = page_of([read_run(write_run(tmp_path / "one"))])

    assert headings(page) == ["Quality", "Evaluations", "Speed", "Memory", "Data", "Configuration"]
    assert captions(page) == [
        "Loss",
        "auc",
        "Learning rate",
        "Throughput",
        "Waiting against computing",
        "Memory",
        "Memory by stage",
    ]
    assert "one: peak 640MiB of 2GiB (31%), in train" in page
    assert "parsing is the bottleneck; data_config.num_workers: 2" in page
    for fact in ("2 files, 2MiB", "15,000 in 1 whole epoch", "in windows of 4,096 rows", "87% of those"):
        assert fact in page


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = page_of([read_run(write_run(tmp_path / "one"))])

    assert re.findall(r"https?:|<link|<img|@import|url\(|\bsrc=", page) == []


def test_what_a_run_does_not_have_is_absent_not_empty(tmp_path: Path) -> None:
    page = page_of([read_run(write_run(tmp_path / "one", [START, STEPS[0]], [], ""))])

    assert captions(page) == [
        "Loss",
        "auc",
        "Learning rate",
        "Throughput",
        "Waiting against computing",
        "Memory",
    ]
    assert headings(page) == ["Quality", "Speed", "Memory", "Data", "Configuration"]


def test_calibration_and_groups_are_shown_where_evaluations_hold_them(tmp_path: Path) -> None:
    detailed = {
        **EVALUATIONS[-1],
        "calibration_bins": {"auc": {"predicted": [0.1, 0.5, 0.9], "observed": [0.12, 0.45, None]}},
        "group_auc": [{"group": "small", "rows": 2, "auc": None}, {"group": "large", "rows": 9, "auc": 0.75}],
    }
    page = page_of([read_run(write_run(tmp_path / "one", evaluations=[detailed]))])

    assert "Calibration" in captions(page)
    assert "Groups" in headings(page)
    assert re.findall(r'<th scope="row">(large|small)</th><td>(\d)</td><td>([^<]*)</td>', page) == [
        ("large", "9", "0.7500"),
        ("small", "2", "one class"),
    ]


def test_runs_beside_each_other(tmp_path: Path) -> None:
    better = {**EVALUATIONS[-1], "metrics": {"auc": 0.9}, "losses": {"binary_cross_entropy": 0.6}}
    one = write_run(tmp_path / "one")
    two = write_run(tmp_path / "two", evaluations=[better], run_file=RUN_FILE.replace("seed: 1", "seed: 2"))

    page = page_of(read_runs([one, two]))

    assert headings(page)[0] == "Final metrics"
    assert '<th scope="row">auc</th><td>0.85000</td><td><b>0.90000</b></td>' in page
    assert '<th scope="row">binary_cross_entropy</th><td><b>0.50000</b></td><td>0.60000</td>' in page
    assert '<th scope="row">train_config.seed</th><td>1</td><td>2</td>' in page
    assert "</i>one: train</span>" in page
    assert "</i>two: train</span>" in page


def test_the_page_says_what_changed_since_the_run_before(tmp_path: Path) -> None:
    write_run(tmp_path / "monday")
    later = write_run(tmp_path / "tuesday", run_file=RUN_FILE.replace("num_epochs: 1", "num_epochs: 2"))

    page = write_report(later).read_text()

    assert "Configuration since monday" in headings(page)
    assert '<th scope="row">train_config.num_epochs</th><td>1</td><td>2</td>' in page


def test_text_of_a_run_file_cannot_become_markup(tmp_path: Path) -> None:
    page = page_of(
        [read_run(write_run(tmp_path / "one", run_file="model_dir: '<script>alert(1)</script>'\n"))]
    )

    assert "<script>alert" not in page


def test_a_run_that_has_ended_never_fails_for_its_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert try_to_write_report(tmp_path / "absent") is None
    assert caplog.messages[0].startswith("report.html was not written: ")
    assert try_to_write_report(write_run(tmp_path / "one", [START, END])) == tmp_path / "one" / "report.html"
