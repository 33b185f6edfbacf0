"""Every optimizer and schedule of the run file trains, is saved, and goes on exactly where it stopped."""

import json
import math

import pytest

DENSE, SPARSE = "{adam_optimizer: {lr: 0.1}}", "{adagrad_optimizer: {lr: 0.1}}"
PARTS = """{adam_optimizer: {lr: 0.1}, cosine_annealing_learning_rate: {T_max: 5}, part_optimizers: [
    {regex_pattern: '.*bias', rmsprop_optimizer: {lr: 0.2}},
    {regex_pattern: 'model.output.*', adadelta_optimizer: {lr: 0.3}}]}"""
STARTED_AT_HALF = "{adagrad_optimizer: {lr: 0.1, initial_accumulator_value: 0.5}}"
RESTARTING = """{adamw_optimizer: {}, ema: {decay: 0.5},
    cosine_annealing_warm_restarts_learning_rate: {T_0: 1, T_mult: 3}}"""
WRITTEN = """{sgd_optimizer: {lr: 0.1}, manual_step_learning_rate:
    {schedule_sizes: [1], learning_rates: [0.5], warmup: true}}"""
RUNS = {
    "adam and parts": ("{adam_optimizer: {lr: 0.1, weight_decay: 0.01}}", PARTS),
    "adagrad and restarts": (STARTED_AT_HALF, RESTARTING),
    "written rates and a plateau": (
        WRITTEN,
        "{adam_optimizer: {}, reduce_on_plateau_learning_rate: {patience: 0}}",
    ),
}


def tensors(desk, model_dir, step):
    """Model and optimizers of a checkpoint, byte by byte."""
    folder = desk.folder / model_dir / "checkpoints" / f"step-{step}"
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def train(desk, *words):
    done = desk.penstock("train", "run.yaml", *words)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.mark.parametrize("name", RUNS)
def test_a_run_in_two_pieces_equals_a_run_in_one(desk, name):
    sparse, dense = RUNS[name]
    desk.write_run((SPARSE, sparse), (DENSE, dense))
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "whole")
    train(desk, "--model_dir", "pieces")
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "pieces", "--continue_train")

    assert tensors(desk, "whole", 4) == tensors(desk, "pieces", 4)


def test_a_run_without_tables_needs_no_optimizer_for_them(desk):
    one_tower = (
        "simple_multi_task: {task_towers: [{tower_name: t, label_name: click, mlp: {hidden_units: [4]},"
        " losses: [{binary_cross_entropy: {}}], metrics: [{auc: {}}]}]}"
    )
    desk.write_run(
        (
            '  - id_feature: {feature_name: user, expression: "user:user_id", num_buckets: 100, embedding_dim: 4}\n',
            "",
        ),
        (
            '  - id_feature: {feature_name: item, expression: "item:item_id", num_buckets: 100, embedding_dim: 4}\n',
            "",
        ),
        ("    - {group_name: wide, group_type: WIDE, feature_names: [user, item]}\n", ""),
        (
            "{group_name: deep, group_type: DEEP, feature_names: [user, item, price]}",
            "{group_name: all, feature_names: [price]}",
        ),
        ("deepfm: {deep: {hidden_units: [4]}}", one_tower),
        ("  losses: [{binary_cross_entropy: {}}]\n  metrics: [{auc: {}}]\n", ""),
        (f"  sparse_optimizer: {SPARSE}\n", ""),
    )
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "whole")
    train(desk, "--model_dir", "pieces")
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "pieces", "--continue_train")

    assert tensors(desk, "whole", 4) == tensors(desk, "pieces", 4)
    assert desk.penstock("eval", "run.yaml", "--model_dir", "whole").exit_code == 0


def test_every_part_logs_its_own_rate(desk):
    desk.write_run((DENSE, PARTS))
    train(desk, "--set", "train_config.log_step_count_steps=1")
    log = [json.loads(line) for line in (desk.folder / "run/log.jsonl").read_text().splitlines()]

    assert next(record["learning_rate"] for record in log if "learning_rate" in record) == {
        "sparse": 0.1,
        "dense": pytest.approx(0.1 * (1 + math.cos(math.pi / 5)) / 2),
        "dense_part_0": 0.2,
        "dense_part_1": 0.3,
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


def test_a_sparse_optimizer_without_a_kernel_is_refused_before_data_are_read(desk):
    desk.write_run((SPARSE, "{lamb_optimizer: {}}"), ("clicks.parquet\neval", "absent.parquet\neval"))

    done = desk.penstock("train", "run.yaml")

    assert done.stderr == (
        "error: run.yaml: train_config.sparse_optimizer.lamb_optimizer: "
        "has a kernel on GPU alone; on CPU use adam_optimizer\n"
    )


def test_adagrad_starts_where_the_run_file_says(desk):
    desk.write_run()
    train(desk, "--model_dir", "from_zero")
    desk.write_run((SPARSE, STARTED_AT_HALF))
    train(desk, "--model_dir", "from_half")

    assert tensors(desk, "from_zero", 2) != tensors(desk, "from_half", 2)


def test_a_plateau_lowers_the_rate_that_the_log_shows(desk):
    plateau = "{metric: auc, patience: 0, factor: 0.5, min_delta: 1.0}"
    desk.write_run((DENSE, f"{{adam_optimizer: {{lr: 0.1}}, reduce_on_plateau_learning_rate: {plateau}}}"))
    often = ("log_step_count_steps=1", "save_checkpoints_steps=1", "num_epochs=2")
    train(desk, *(word for setting in often for word in ("--set", f"train_config.{setting}")))
    log = [json.loads(line) for line in (desk.folder / "run/log.jsonl").read_text().splitlines()]

    assert [record["learning_rate"]["dense"] for record in log if "learning_rate" in record] == [
        0.1,
        0.1,
        0.05,
        0.025,
    ]
