"""Which checkpoint a path means."""

from pathlib import Path

import pytest

from penstock.run.restore import checkpoint_at
from tests.run.training_runs import desk_elsewhere, put_on, trained

KEY = "train_config.fine_tune_checkpoint"


@pytest.fixture(scope="module")
def run_of_three_elsewhere(tmp_path_factory):
    """Three steps, of which the last had the least loss; an early stop would have gone back to the second."""
    by_loss = {
        "export_config.best_exporter_metric": "binary_cross_entropy",
        "train_config.dense_optimizer": {"sgd_optimizer": {"lr": 0.0}},
        "train_config.sparse_optimizer": {"sgd_optimizer": {"lr": 0.0}},
    }
    with desk_elsewhere(tmp_path_factory) as desk:
        return desk.folder / trained(desk, by_loss).model_dir


@pytest.fixture
def run_of_three(desk, run_of_three_elsewhere):
    """Its model_dir, on this desk."""
    return put_on(desk, run_of_three_elsewhere)


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("run/checkpoints/step-2", 2),
        ("run", 3),
        ("run/checkpoints", 3),
        ("run/latest", 3),
        ("run/best", 1),  # nothing was learned: the earliest of equals
    ],
)
def test_a_path_means_a_checkpoint_a_run_or_a_word_behind_it(run_of_three, path, step):
    assert checkpoint_at(Path(path), KEY).step == step


def test_a_run_means_the_checkpoint_that_it_went_back_to(run_of_three):
    (run_of_three / "best.json").write_text('{"step": 2}')

    assert checkpoint_at(Path("run"), KEY).step == 2
    assert checkpoint_at(Path("run/latest"), KEY).step == 3


def test_eval_and_fine_tuning_take_the_same_paths(desk, run_of_three):
    judged = desk.penstock("eval", "run.yaml", "--checkpoint_path", "run/best")
    tuned = desk.penstock("train", "run.yaml", "--model_dir", "other", "--fine_tune_checkpoint", "run/best")

    assert "where   run/checkpoints/step-1\n" in judged.stdout, judged.stderr
    assert tuned.stderr.splitlines()[0] == "fine-tuning from run/checkpoints/step-1"
    assert tuned.exit_code == 0
