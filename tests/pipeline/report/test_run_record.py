"""What a model_dir tells of its run."""

import os
from pathlib import Path

import pytest

from penstock.config.errors import CheckpointError
from penstock.pipeline.report.run_record import distinct_names, previous_run, read_run
from tests.pipeline.report.run_folders import MIB, START, write_run


def test_a_run_is_read(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one"))

    assert run.name == "one"
    assert [record["step"] for record in run.steps] == [5, 10, 15]
    assert run.limit_bytes == 2048 * MIB
    assert run.memory["peak_bytes"] == 640 * MIB
    assert run.final_values() == {"binary_cross_entropy": 0.5, "auc": 0.85}  # undefined ones are left out
    assert run.config["train_config"] == {"num_epochs": 1, "seed": 1}


def test_a_folder_without_a_log_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as error:
        read_run(tmp_path)
    assert str(error.value) == (
        f"{tmp_path} holds no log.jsonl with a line in it; give the model_dir of a run that has trained"
    )


def test_a_run_that_is_still_going_on_has_no_memory_and_no_last_line(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one", log=[START], evaluations=[]))

    assert (run.memory, run.last, run.final_values(), run.advice) == ({}, {}, {}, None)


def test_the_previous_run_is_the_one_written_last_before(tmp_path: Path) -> None:
    for place, name in enumerate(["first", "second", "third", "later"]):
        folder = write_run(tmp_path / name)
        os.utime(folder / "run.yaml", (place, place))
    (tmp_path / "second" / "log.jsonl").write_text("")  # failed before its first line

    previous = previous_run(read_run(tmp_path / "third"))

    assert previous is not None
    assert previous.name == "first"
    assert previous_run(previous) is None


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    assert distinct_names([Path("a/run"), Path("b/run")]) == ["a/run", "b/run"]
    assert distinct_names([Path("a/one"), Path("b/two")]) == ["one", "two"]
    assert distinct_names([Path("a/run"), Path("a/run")]) == ["1: run", "2: run"]
