"""The parts of a page: present where the records hold them, absent otherwise."""

import re
from pathlib import Path

import pytest

from penstock.observe.report.page import page_of, try_to_write_report, write_report
from penstock.observe.report.run_record import read_run, read_runs
from tests.observe.report.run_folders import (
    EARLY_END,
    END,
    EVALUATIONS,
    PROFILE,
    RUN_FILE,
    START,
    STEPS,
    write_profile,
    write_run,
)


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>([^<]*)</h2>", page)


def captions(page: str) -> list[str]:
    return re.findall(r"<figcaption>([^<]*)</figcaption>", page)


def test_the_page_of_a_run(tmp_path: Path) -> None:
    page = page_of([read_run(write_run(tmp_path / "one"))])

    assert headings(page) == [
        "Quality",
        "Evaluations",
        "Speed",
        "Memory",
        "Data",
        "What changed in the configuration",
        "Configuration",
    ]
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
    assert re.findall(r"https?:|<link|<img|@import|url\(|\bsrc=", page) == []  # nothing from elsewhere


def test_a_run_that_ended_before_its_first_line_says_why_it_has_no_curves(tmp_path: Path) -> None:
    runs = read_runs([write_run(tmp_path / "long"), write_run(tmp_path / "short", [START, END])])

    page = page_of(runs)

    assert (
        "short has no curves of training: it ended at step 15, before the first line of its log was due; "
        "a smaller train_config.log_step_count_steps gives some." in page
    )
    assert "long has no curves" not in page


def test_calibration_and_groups_are_shown_where_evaluations_hold_them(tmp_path: Path) -> None:
    detailed = {
        **EVALUATIONS[-1],
        "calibration_bins": {"auc": {"predicted": [0.1, 0.5, 0.9], "observed": [0.12, 0.45, None]}},
        "remarks": {"grouped_auc": "1 of 2 groups have both classes"},
        "group_auc": [{"group": "small", "rows": 2, "auc": None}, {"group": "large", "rows": 9, "auc": 0.75}],
    }
    later = {**detailed, "step": 20, "group_auc": [{"group": "later", "rows": 9, "auc": 0.75}]}
    log = [START, *STEPS, {**EARLY_END, "step": 20, "restored_step": detailed["step"]}]
    page = page_of([read_run(write_run(tmp_path / "one", log, [detailed, later]))])

    assert "Calibration" in captions(page)
    assert "Groups" in headings(page)
    assert re.findall(r'<th scope="row">(large|small|later)</th><td>(\d)</td><td>([^<]*)</td>', page) == [
        ("large", "9", "0.7500"),
        ("small", "2", "one class"),
    ]
    assert "grouped_auc: 1 of 2 groups have both classes. Here are the 2 groups with most rows." in page


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
    first = write_report(tmp_path / "monday").read_text()
    assert "No earlier run of deepfm on the same train_input_path lies in a folder beside this one." in first
    assert '<th scope="row">train_config.num_epochs</th><td>1</td><td>2</td>' in page


def test_a_run_that_stopped_early_shows_the_step_that_it_went_back_to(tmp_path: Path) -> None:
    page = page_of([read_run(write_run(tmp_path / "one", log=[START, *STEPS, EARLY_END]))])

    assert (
        "<b>one stopped early at step 15: </b>auc got no better in 1 evaluation (best 0.8 at step 10). "
        "It went back to step 10, the best one, which eval and predict take" in page
    )
    assert "<div><b>0.8000</b><span>auc</span><span>of step 10</span></div>" in page
    assert "<div><b>15</b><span>steps</span></div>" in page
    assert '<tr><th scope="row">10 (restored)</th>' in page
    assert page.count('<i class="key mark"></i>step 10, restored') == 2  # loss and auc


def test_a_run_may_stop_without_going_back(tmp_path: Path) -> None:
    end = {**EARLY_END, "restored_step": None, "stopped_because": "a callback asked for it"}
    page = page_of([read_run(write_run(tmp_path / "one", log=[START, *STEPS, end]))])

    assert "<b>one stopped early at step 15: </b>a callback asked for it.</p>" in page
    assert "<div><b>0.8500</b><span>auc</span></div>" in page


def test_an_undefined_metric_says_why(tmp_path: Path) -> None:
    always = {"auc": "without 1 row whose prediction is NaN"}
    evaluations = [
        {**EVALUATIONS[0], "remarks": always},
        {**EVALUATIONS[1], "remarks": {**always, "grouped_auc": "no group with both classes"}},
    ]
    page = page_of([read_run(write_run(tmp_path / "one", evaluations=evaluations))])

    assert (
        "<div><b>undefined</b><span>grouped_auc</span><span>no group with both classes</span></div>" in page
    )
    assert '<td><span class="undefined">undefined</span></td>' in page  # of a line without a reason
    assert '<td><span class="undefined" title="no group with both classes">undefined</span></td>' in page
    assert "<li>grouped_auc at step 15: no group with both classes</li>" in page
    assert page.count("<li>auc: without 1 row whose prediction is NaN</li>") == 1
    assert '<span title="without 1 row whose prediction is NaN">0.85000</span>' in page


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


def profile_lines(page: str) -> list[list[str]]:
    """The cells of the data profile, line by line."""
    table = page.partition('<div class="table columns">')[2].partition("</table>")[0]
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", line) for line in table.split("</tr>")[:-1]]


def test_every_column_with_its_use_and_its_values(tmp_path: Path) -> None:
    page = page_of([read_run(write_profile(write_run(tmp_path / "one")))])

    head, click, user, tags = profile_lines(page)
    assert head[:6] == ["column", "type", "used for", "missing", "distinct", "minimum"]
    assert head[6:] == ["maximum", "items", "most frequent", "mean"]
    assert click == ["click", "int64", "label", "0", "≥2", "0", "1", "", "0 (75%)", "0.25"]
    assert user[2:] == ["id_feature user, grouping of metrics", "0", "≥3,000", "0", "9999", "", "", ""]
    assert tags[1:5] == ["list&lt;string&gt;", "id_feature tags", "6.2%", "≥120"]
    assert tags[5:] == ["&lt;b&gt;", "t·z", "1 to 5, mean 2.8", "", ""]
    assert "<summary>Data profile: 3 columns</summary>" in page
    assert (
        "From 4,096 of 15,000 rows, from all over the files; ≥: about so many in these rows alone. The first 3 of "
        "4 columns that the run reads. Columns that the run does not read are not looked at." in page
    )


def test_what_a_run_warned_of_in_its_data_is_on_the_page(tmp_path: Path) -> None:
    remark = "column 'city': is <rome> in all 15,000 rows and teaches nothing"
    one = write_profile(write_run(tmp_path / "one"), {**PROFILE, "remarks": [remark]})

    page = page_of([read_run(one)])
    assert "is &lt;rome&gt; in all 15,000 rows and teaches nothing</p>" in page


def test_a_run_without_a_profile_says_why_and_an_older_one_nothing(tmp_path: Path) -> None:
    one = write_profile(write_run(tmp_path / "one"), {"problem": "there are no rows", "seconds": 0.0})

    assert "There is no data profile: there are no rows." in page_of([read_run(one)])
    assert "data profile" not in page_of([read_run(write_run(tmp_path / "older"))]).lower()


def test_a_file_of_another_make_does_not_cost_the_page(tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "one"), write_run(tmp_path / "two")
    (one / "data_profile.json").write_text("[1, 2")
    write_profile(two, {"columns": [{"column": "a"}]})

    assert "data profile" not in page_of([read_run(one)]).lower()
    assert profile_lines(page_of([read_run(two)]))[1][0] == "a"


def test_the_memory_of_stages_with_the_keys_that_make_them_smaller_and_all_advice(tmp_path: Path) -> None:
    end = {**END, "quality_advice": {"text": "auc was best at the first evaluation"}}
    page = page_of([read_run(write_run(tmp_path / "one", log=[START, *STEPS, end]))])

    assert '<th scope="row">process</th><td>500MiB</td><td>500MiB</td><td></td>' in page  # of an older log
    assert '<th scope="row">model</th><td>4MiB</td><td>5MiB</td><td>embedding_dim</td>' in page
    assert "<b>one: </b>auc was best at the first evaluation</p>" in page
    assert "<b>one: </b>waiting 50% of the time" in page
