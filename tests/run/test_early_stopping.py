"""A run that stops when it gets no better, and ends with its best parameters."""

import json
from dataclasses import replace

import pytest

from penstock.checkpoint import CheckpointStore
from penstock.run.evaluate import evaluate_checkpoint
from penstock.run.run_config import load_run
from penstock.training.best import marked_step
from tests.run.training_runs import STEPS_OF_2, desk_elsewhere, log_of, parameters, put_on, trained

WORSE = {
    "train_config.dense_optimizer": {"sgd_optimizer": {"lr": 30.0}},
    "train_config.sparse_optimizer": {"sgd_optimizer": {"lr": 30.0}},
    "train_config.num_epochs": 20,
    "train_config.early_stopping": {"metric": "binary_cross_entropy", "patience": 2},
}
"""Rates so large that the loss soon grows; less of it is better, which nobody has to say."""


def evaluations(folder):
    return [json.loads(line) for line in (folder / "eval_result.jsonl").read_text().splitlines()]


def best_of(folder):
    """Step and loss of the best evaluation."""
    found = min(evaluations(folder), key=lambda record: record["losses"]["binary_cross_entropy"])
    return found["step"], found["losses"]["binary_cross_entropy"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that stopped, not to be changed."""
    with desk_elsewhere(tmp_path_factory) as desk:
        result = trained(desk, WORSE)
        return replace(
            result, model_dir=desk.folder / result.model_dir, checkpoint=desk.folder / result.checkpoint
        )


def test_it_stops_and_ends_with_the_best(whole):
    step, loss = best_of(whole.model_dir)
    assert whole.steps == step + 2 < 60
    assert whole.restored_step == whole.evaluated_step == marked_step(whole.model_dir) == step
    assert whole.checkpoint.name == f"step-{step}"
    assert whole.losses == {"binary_cross_entropy": loss}
    assert whole.stopped_because.startswith("binary_cross_entropy got no better in 2 evaluations (best ")
    end = log_of(whole.model_dir)[-1]
    assert (end["stopped_because"], end["restored_step"]) == (whole.stopped_because, step)


def test_what_comes_after_takes_the_best_unless_told_otherwise(desk, whole):
    put_on(desk, whole.model_dir)
    run = load_run(desk.folder / "run.yaml", STEPS_OF_2 | WORSE)

    assert evaluate_checkpoint(run).step == whole.restored_step
    assert evaluate_checkpoint(run, "latest").step == whole.steps
    assert evaluate_checkpoint(run).evaluation.losses == pytest.approx(whole.losses)


def test_the_best_stays_though_only_the_newest_is_kept_and_it_was_not_its_turn(desk):
    rarely = {"train_config.save_checkpoints_steps": 0, "train_config.eval_steps": 1}

    result = trained(desk, WORSE | rarely | {"train_config.keep_checkpoint_max": 1})

    steps = CheckpointStore(result.checkpoint.parent).steps()
    assert {result.restored_step, result.steps} <= set(steps)
    assert len(steps) <= 3  # export_config may have a best of its own
    assert best_of(result.model_dir)[0] == result.restored_step


def test_a_run_that_stopped_stays_stopped_and_a_patient_one_goes_on(desk, whole):
    put_on(desk, whole.model_dir)
    patient = {**WORSE["train_config.early_stopping"], "patience": 3}

    again = trained(desk, WORSE, resume=True)
    further = trained(desk, WORSE | {"train_config.early_stopping": patient}, resume=True)

    assert (again.steps, again.restored_step) == (whole.steps, whole.restored_step)
    assert further.steps > whole.steps


def test_a_kill_after_a_checkpoint_changes_nothing(desk, whole):
    trained(desk, WORSE | {"train_config.num_epochs": None, "train_config.num_steps": 3})
    (desk.folder / "run/best.json").unlink()

    resumed = trained(desk, WORSE, resume=True)

    assert (resumed.steps, resumed.restored_step) == (whole.steps, whole.restored_step)
    assert parameters(resumed.checkpoint) == parameters(whole.checkpoint)
    assert [record["losses"] for record in evaluations(resumed.model_dir)] == [
        record["losses"] for record in evaluations(whole.model_dir)
    ]


def test_a_run_to_its_end_goes_back_to_its_best_and_has_stopped_for_nothing(desk):
    patient = {"metric": "binary_cross_entropy", "patience": 100}

    result = trained(desk, WORSE | {"train_config.early_stopping": patient, "train_config.num_epochs": 4})

    step, loss = best_of(result.model_dir)
    assert (result.steps, result.stopped_because) == (12, None)
    assert (result.restored_step, result.losses["binary_cross_entropy"]) == (step, loss)
    assert step < result.steps
