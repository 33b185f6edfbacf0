"""Running means of the dense parameters, from training to evaluation and prediction."""

import json

import pytest

DENSE = "{adam_optimizer: {lr: 0.1}}"
AVERAGED = (DENSE, "{adam_optimizer: {lr: 0.1}, ema: {decay: 0.9}}")
BY_PARAMETERS = ("--set", "eval_config.use_dense_ema=false")


def losses(desk, *words):
    """The loss that `eval` finds for the last checkpoint."""
    done = desk.penstock("eval", "run.yaml", "--eval_result_filename", "result.json", *words)
    assert done.exit_code == 0, done.stderr
    return json.loads((desk.folder / "run/result.json").read_text())["losses"]


def told_on_the_way(desk):
    lines = (desk.folder / "run/eval_result.jsonl").read_text().splitlines()
    return json.loads(lines[-1])["losses"]


def train(desk, *words):
    done = desk.penstock("train", "run.yaml", *words)
    assert done.exit_code == 0, done.stderr


def test_evaluation_uses_the_means_on_the_way_and_afterwards_unless_told_otherwise(desk):
    desk.write_run(AVERAGED)
    train(desk)

    assert losses(desk) == pytest.approx(told_on_the_way(desk))
    assert losses(desk, *BY_PARAMETERS) != pytest.approx(losses(desk))


def test_training_itself_is_the_same_with_and_without_them(desk):
    train(desk)
    without = losses(desk)
    (desk.folder / "run").rename(desk.folder / "without")
    desk.write_run(AVERAGED)
    train(desk)

    assert losses(desk, *BY_PARAMETERS) == without


def test_a_checkpoint_without_means_says_so(trained_desk):
    trained_desk.write_run(AVERAGED)

    done = trained_desk.penstock("eval", "run.yaml")

    assert done.stderr == (
        "error: run/checkpoints/step-2: holds no running means of parameters; "
        "set eval_config.use_dense_ema: false\n"
    )


def test_means_that_are_asked_for_must_be_kept(desk):
    done = desk.penstock("train", "run.yaml", "--set", "eval_config.use_dense_ema=true")

    assert done.exit_code == 1
    assert (
        "eval_config.use_dense_ema: is true, but no means are kept; add train_config.dense_op" in done.stderr
    )
