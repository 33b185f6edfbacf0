"""`penstock report`."""

import json
import shutil

import pytest

from penstock.observe import advice
from tests.cli.desk import Desk


def test_two_runs_go_into_the_file_that_is_named(trained_desk: Desk) -> None:
    shutil.copytree("run", "other")

    done = trained_desk.penstock("report", "run", "other", "--output", "both.html")

    assert done.stdout == "both.html\n"
    assert "2 runs: run and other" in (trained_desk.folder / "both.html").read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["run", "run"], "run: is given twice; compare a run with others"),
        (["run", "--output", "nowhere/x.html"], "--output: there is no folder 'nowhere'; make it first"),
        (["run", "--output", "run"], "--output: 'run' is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_written_is_one_line(trained_desk: Desk, words: list[str], problem: str) -> None:
    done = trained_desk.penstock("report", *words)

    assert done.stderr == f"error: {problem}\n"
    assert done.exit_code == 1


def test_advice_is_told_at_the_end_in_the_log_and_on_the_page(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any waiting and any number of steps are enough here."""
    monkeypatch.setattr(advice, "WORTH_SAYING", 0.0)
    monkeypatch.setattr(advice, "ENOUGH_STEPS", 1)

    done = desk.penstock("train", "run.yaml")

    assert done.exit_code == 0, done.stderr
    end = json.loads((desk.folder / "run" / "log.jsonl").read_text().splitlines()[-1])
    text = end["advice"]["text"]
    assert text.startswith("waiting ")
    assert f"advice {text} speed" in " ".join(done.stdout.split())
    assert f"<b>run: </b>{text}" in (desk.folder / "run" / "report.html").read_text()
