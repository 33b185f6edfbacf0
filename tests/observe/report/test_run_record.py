"""What a model_dir says of its run, and which run it is compared with."""

import json
import os
from pathlib import Path

import pytest

from penstock.config.errors import CheckpointError
from penstock.observe.report.run_record import previous_run, read_run, read_runs
from tests.observe.report.run_folders import (
    EARLY_END,
    END,
    EVALUATIONS,
    MIB,
    RUN_FILE,
    START,
    STEPS,
    write_run,
)


def test_a_run_is_read(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one"))

    assert run.name == "one"
    assert [record["step"] for record in run.steps] == [5, 10, 15]
    assert run.start["limit_bytes"] == 2048 * MIB
    assert run.memory["peak_bytes"] == 640 * MIB
    assert run.final_values == {"binary_cross_entropy": 0.5, "auc": 0.85, "grouped_auc": None}
    assert (run.num_steps, run.restored_step) == (15, None)
    assert run.config["train_config"] == {"num_epochs": 1, "seed": 1}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nosuch", "there is no such folder"),
        ("run.yaml", "is a file"),
        ("empty", "holds no log.jsonl with a line in it"),
    ],
)
def test_what_is_no_run_is_one_line(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "run.yaml").touch()

    with pytest.raises(CheckpointError) as error:
        read_run(tmp_path / name)
    assert str(error.value) == (
        f"{tmp_path / name}: {problem}; give the folder of a run, which is the model_dir that penstock train fills"
    )


def test_a_run_that_went_back_to_its_best_step_ends_with_that_evaluation(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one", log=[START, *STEPS, EARLY_END]))
    last = read_run(write_run(tmp_path / "last", log=[START, *STEPS, {**END, "restored_step": 15}]))

    assert (run.num_steps, run.restored_step) == (15, 10)
    assert run.final_evaluation == EVALUATIONS[0]
    assert run.final_values["auc"] == pytest.approx(0.8)
    assert last.restored_step is None  # its last step was the best


def test_a_run_that_was_continued_or_has_just_begun_has_no_end(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one", log=[START, *STEPS, EARLY_END, {**START, "step": 15}]))
    begun = read_run(write_run(tmp_path / "two", log=[START], evaluations=[]))

    assert (run.end, run.restored_step, run.num_steps, run.final_values["auc"]) == ({}, None, 15, 0.85)
    assert (begun.memory, begun.last, begun.final_values, begun.end) == ({}, {}, {}, {})


def test_runs_of_one_name_are_told_apart_and_none_is_compared_with_itself(tmp_path: Path) -> None:
    for name in ("a/run", "b/run", "b/two"):
        write_run(tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / "a/run")

    assert [run.name for run in read_runs([tmp_path / "a/run", tmp_path / "b/run"])] == ["a/run", "b/run"]
    assert [run.name for run in read_runs([tmp_path / "a/run", tmp_path / "b/two"])] == ["run", "two"]
    for again in ("a/run", "link", "b/../a/run"):
        with pytest.raises(CheckpointError) as error:
            read_runs([tmp_path / "a/run", tmp_path / "b/two", tmp_path / again])
        assert str(error.value) == f"{tmp_path / again}: is given twice; compare a run with others"


def write_in_turn(folder: Path, **run_files: str) -> None:
    """Runs of these names, each later than the one before."""
    for index, (name, run_file) in enumerate(run_files.items()):
        os.utime(write_run(folder / name, run_file=run_file) / "run.yaml", (index, index))


def name_of_previous(path: Path) -> str | None:
    previous = previous_run(read_run(path))
    return None if previous is None else previous.name


def test_the_previous_run_is_the_newest_that_began_earlier_whichever_was_continued_since(
    tmp_path: Path,
) -> None:
    write_in_turn(tmp_path, first=RUN_FILE, second=RUN_FILE, third=RUN_FILE, later=RUN_FILE)
    assert name_of_previous(tmp_path / "third") == "second"
    assert name_of_previous(tmp_path / "first") is None

    for day, name in enumerate(("second", "third"), start=1):
        (tmp_path / name / "version").write_text(json.dumps({"started_at": f"2026-01-0{day}T00:00:00+00:00"}))
    os.utime(tmp_path / "second" / "run.yaml", (99, 99))
    assert name_of_previous(tmp_path / "third") == "second"

    (tmp_path / "second" / "log.jsonl").write_text("")  # failed before its first line
    assert name_of_previous(tmp_path / "third") == "later"


@pytest.mark.parametrize(
    "other",
    [
        RUN_FILE.replace("data/clicks", "data/purchases"),
        "model_config: [",  # somebody else's file
    ],
)
def test_a_run_of_another_model_or_on_other_data_is_none_to_compare_with(tmp_path: Path, other: str) -> None:
    write_in_turn(tmp_path, alike=RUN_FILE, other=other, this=RUN_FILE.replace("seed: 1", "seed: 2"))

    assert name_of_previous(tmp_path / "this") == "alike"
