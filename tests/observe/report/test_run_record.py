"""What a model_dir tells of its run."""

from pathlib import Path

import pytest

from penstock.config.errors import CheckpointError
from penstock.observe.report.run_record import distinct_names, read_run
from tests.observe.report.run_folders import EARLY_END, END, EVALUATIONS, MIB, START, STEPS, write_run


def test_a_run_is_read(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one"))

    assert run.name == "one"
    assert [record["step"] for record in run.steps] == [5, 10, 15]
    assert run.limit_bytes == 2048 * MIB
    assert run.memory["peak_bytes"] == 640 * MIB
    assert run.final_values() == {"binary_cross_entropy": 0.5, "auc": 0.85, "grouped_auc": None}
    assert (run.num_steps, run.stopped_because, run.restored_step) == (15, None, None)
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

    assert (run.num_steps, run.restored_step) == (15, 10)
    assert run.stopped_because == "auc got no better in 1 evaluation (best 0.8 at step 10)"
    assert run.final_evaluation == EVALUATIONS[0]
    assert run.final_values()["auc"] == pytest.approx(0.8)


def test_a_run_that_ends_with_its_last_step_went_back_to_none(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one", log=[START, *STEPS, {**END, "restored_step": 15}]))

    assert run.restored_step is None


def test_the_end_of_a_run_that_was_continued_is_no_end(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one", log=[START, *STEPS, EARLY_END, {**START, "step": 15}]))

    assert (run.end, run.restored_step, run.num_steps) == ({}, None, 15)
    assert run.final_values()["auc"] == 0.85


def test_a_run_that_is_still_going_on_has_no_memory_and_no_last_line(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "one", log=[START], evaluations=[]))

    assert (run.memory, run.last, run.final_values(), run.advice) == ({}, {}, {}, None)


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    assert distinct_names([Path("a/run"), Path("b/run")]) == ["a/run", "b/run"]
    assert distinct_names([Path("a/one"), Path("b/two")]) == ["one", "two"]


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "run")

    for again in ("run", "link", "other/../run"):
        with pytest.raises(CheckpointError) as error:
            distinct_names([tmp_path / "run", tmp_path / "third", tmp_path / again])
        assert str(error.value) == f"{tmp_path / again}: is given twice; compare a run with others"
