"""Which run a run is compared with."""

import json
import os
from pathlib import Path

import pytest

from penstock.observe.report.previous_run import model_name, previous_run
from penstock.observe.report.run_record import read_run
from tests.observe.report.run_folders import RUN_FILE, write_run


def write_in_turn(folder: Path, **run_files: str) -> None:
    """Runs of these names, each later than the one before."""
    for place, (name, run_file) in enumerate(run_files.items()):
        os.utime(write_run(folder / name, run_file=run_file) / "run.yaml", (place, place))


def name_of_previous(path: Path) -> str | None:
    previous = previous_run(read_run(path))
    return None if previous is None else previous.name


def test_it_is_the_newest_earlier_one(tmp_path: Path) -> None:
    write_in_turn(tmp_path, first=RUN_FILE, second=RUN_FILE, third=RUN_FILE, later=RUN_FILE)

    assert name_of_previous(tmp_path / "third") == "second"
    assert name_of_previous(tmp_path / "first") is None


def test_a_run_that_was_continued_since_began_before_all_the_same(tmp_path: Path) -> None:
    write_in_turn(tmp_path, first=RUN_FILE, second=RUN_FILE, third=RUN_FILE)
    for day, name in enumerate(("second", "third"), start=1):
        (tmp_path / name / "version").write_text(json.dumps({"started_at": f"2026-01-0{day}T00:00:00+00:00"}))
    os.utime(tmp_path / "second" / "run.yaml", (99, 99))

    assert name_of_previous(tmp_path / "third") == "second"
    assert name_of_previous(tmp_path / "second") == "first"


def test_a_run_that_failed_before_its_first_line_is_passed_over(tmp_path: Path) -> None:
    write_in_turn(tmp_path, first=RUN_FILE, second=RUN_FILE, third=RUN_FILE)
    (tmp_path / "second" / "log.jsonl").write_text("")

    assert name_of_previous(tmp_path / "third") == "first"


@pytest.mark.parametrize(
    "other",
    [
        RUN_FILE.replace("deepfm", "mmoe"),
        RUN_FILE.replace("data/clicks", "data/purchases"),
        "model_config: [",  # somebody else's file
        "- a list",
        "",
    ],
)
def test_a_run_of_another_model_or_on_other_data_is_none_to_compare_with(tmp_path: Path, other: str) -> None:
    write_in_turn(tmp_path, alike=RUN_FILE, other=other, this=RUN_FILE.replace("seed: 1", "seed: 2"))

    assert name_of_previous(tmp_path / "this") == "alike"


def test_the_model_is_the_one_that_the_run_file_chooses() -> None:
    assert model_name({"model_config": {"feature_groups": [], "mmoe": {"num_expert": 3}}}) == "mmoe"
    assert model_name({"model_config": None}) is None
    assert model_name({}) is None
