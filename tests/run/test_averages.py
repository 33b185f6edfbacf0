"""Running means of the dense parameters, from training to evaluation and prediction."""

import json

import pytest

from tests.run.training_runs import log_of

AVERAGED = ("{adam_optimizer: {lr: 0.1}}", "{adam_optimizer: {lr: 0.1}, ema: {decay: 0.9}}")
BY_PARAMETERS = ("--set", "eval_config.use_dense_ema=false")


def losses(desk, *words):
    """The loss that `eval` finds for the last checkpoint."""
    done = desk.penstock("eval", "run.yaml", "--eval_result_filename", "result.json", *words)
    assert done.exit_code == 0, done.stderr
    return json.loads((desk.folder / "run/result.json").read_text())["losses"]


def test_evaluation_uses_the_means_unless_asked_otherwise_and_training_is_the_same_without(trained_desk):
    desk, without = trained_desk, losses(trained_desk)
    (desk.folder / "run").rename(desk.folder / "without")
    desk.write_run(AVERAGED)

    assert desk.penstock("train", "run.yaml").exit_code == 0

    on_the_way = json.loads((desk.folder / "run/eval_result.jsonl").read_text().splitlines()[-1])["losses"]
    assert losses(desk) == pytest.approx(on_the_way)
    assert losses(desk) != pytest.approx(without)
    assert losses(desk, *BY_PARAMETERS) == without
    assert [line.get("loss") for line in log_of(desk.folder / "run")] == [
        line.get("loss") for line in log_of(desk.folder / "without")
    ]


def test_a_checkpoint_without_means_and_a_run_that_keeps_none_say_so(trained_desk):
    unkept = trained_desk.penstock("train", "run.yaml", "--set", "eval_config.use_dense_ema=true")
    trained_desk.write_run(AVERAGED)
    absent = trained_desk.penstock("eval", "run.yaml")

    assert unkept.exit_code == 1
    assert "eval_config.use_dense_ema: is true, but no means are kept; add train_config." in unkept.stderr
    assert absent.stderr == (
        "error: run/checkpoints/step-2: holds no running means of parameters; "
        "set eval_config.use_dense_ema: false\n"
    )
