"""Every optimizer and schedule of the run file trains, is saved, and goes on exactly where it stopped."""

import json

import pytest

DENSE, SPARSE = "{adam_optimizer: {lr: 0.1}}", "{adagrad_optimizer: {lr: 0.1}}"
OPTIMIZERS = {
    "dense adamw": (DENSE, "{adamw_optimizer: {lr: 0.1, weight_decay: 0.1}}"),
    "dense adadelta": (DENSE, "{adadelta_optimizer: {lr: 0.1}}"),
    "dense rmsprop": (DENSE, "{rmsprop_optimizer: {lr: 0.1}}"),
    "dense sgd": (DENSE, "{sgd_optimizer: {lr: 0.1, nesterov: true}}"),
    "parts": (
        DENSE,
        "{adam_optimizer: {lr: 0.1}, part_optimizers: [{regex_pattern: '.*bias', rmsprop_optimizer: {lr: 0.2}}]}",
    ),
    "cosine": (DENSE, "{adam_optimizer: {lr: 0.1}, cosine_annealing_learning_rate: {T_max: 5}}"),
    "restarts": (
        SPARSE,
        "{adagrad_optimizer: {lr: 0.1}, cosine_annealing_warm_restarts_learning_rate: {T_0: 1, T_mult: 3}}",
    ),
    "written rates": (
        SPARSE,
        (
            "{sgd_optimizer: {lr: 0.1},"
            " manual_step_learning_rate: {schedule_sizes: [1], learning_rates: [0.5], warmup: true}}"
        ),
    ),
}


def tensors(desk, model_dir, step):
    """Everything a checkpoint holds, byte by byte, but for what names its time."""
    folder = desk.folder / model_dir / "checkpoints" / f"step-{step}"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


def train(desk, *words):
    done = desk.penstock("train", "run.yaml", *words)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_in_two_pieces_equals_a_run_in_one(desk, name):
    desk.write_run(OPTIMIZERS[name])
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "whole")
    train(desk, "--model_dir", "pieces")
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "pieces", "--continue_train")

    assert tensors(desk, "whole", 4) == tensors(desk, "pieces", 4)


def test_every_part_logs_its_own_rate(desk):
    desk.write_run(OPTIMIZERS["parts"])
    train(desk, "--set", "train_config.log_step_count_steps=1")
    log = [json.loads(line) for line in (desk.folder / "run/log.jsonl").read_text().splitlines()]

    assert next(record["learning_rate"] for record in log if "learning_rate" in record) == {
        "sparse": 0.1,
        "dense": 0.1,
        "dense_part_0": 0.2,
    }


def test_a_part_without_parameters_is_told_before_training(desk):
    part = "{regex_pattern: 'model.dep.*', adam_optimizer: {}}"
    desk.write_run((DENSE, f"{{adam_optimizer: {{}}, part_optimizers: [{part}]}}"))

    done = desk.penstock("train", "run.yaml")

    assert done.exit_code == 1
    assert done.stderr.startswith(
        "error: run.yaml: train_config.dense_optimizer.part_optimizers[0].regex_pattern: "
        "'model.dep.*' matches no parameter; near names: model."
    )
