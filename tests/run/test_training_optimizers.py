"""Every optimizer and schedule of the run file trains, is saved, and goes on exactly where it stopped."""

import math

import pytest

from tests.run.training_runs import log_of, tensors

DENSE, SPARSE = "{adam_optimizer: {lr: 0.1}}", "{adagrad_optimizer: {lr: 0.1}}"
PARTS = """{adam_optimizer: {lr: 0.1}, cosine_annealing_learning_rate: {T_max: 5}, part_optimizers: [
    {regex_pattern: '.*bias', rmsprop_optimizer: {lr: 0.2}, cosine_annealing_warm_restarts_learning_rate: {T_0: 9}},
    {regex_pattern: 'model.output.*', adadelta_optimizer: {lr: 0.3}}]}"""
WRITTEN = """{adagrad_optimizer: {lr: 0.1, initial_accumulator_value: 0.5}, manual_step_learning_rate:
    {schedule_sizes: [1], learning_rates: [0.5], warmup: true}}"""
PLATEAU = """{adamw_optimizer: {lr: 0.1}, ema: {decay: 0.5}, reduce_on_plateau_learning_rate:
    {metric: auc, patience: 0, factor: 0.5, min_delta: 1.0}}"""
OFTEN = ("log_step_count_steps=1", "save_checkpoints_steps=1")


def train(desk, *words):
    settings = [word for setting in OFTEN for word in ("--set", f"train_config.{setting}")]
    done = desk.penstock("train", "run.yaml", *settings, *words)
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("sparse", "dense", "rates"),
    [
        (
            "{adam_optimizer: {lr: 0.1, weight_decay: 0.01}}",
            PARTS,
            {"dense": 0.1 * (1 + math.cos(math.pi / 5)) / 2, "dense_part_1": 0.3},
        ),
        (WRITTEN, PLATEAU, {"dense": 0.1}),
    ],
    ids=["adam and parts", "written rates and a plateau"],
)
def test_a_run_in_two_pieces_equals_a_run_in_one(desk, sparse, dense, rates):
    desk.write_run((SPARSE, sparse), (DENSE, dense))
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "whole")
    train(desk, "--model_dir", "pieces")
    train(desk, "--set", "train_config.num_epochs=2", "--model_dir", "pieces", "--continue_train")

    whole, pieces = (tensors(desk.folder / name / "checkpoints/step-4") for name in ("whole", "pieces"))
    assert whole == pieces
    logged = [
        record["learning_rate"] for record in log_of(desk.folder / "whole") if "learning_rate" in record
    ]
    assert {name: logged[0][name] for name in rates} == pytest.approx(rates)
    if "dense_part_0" not in logged[0]:  # a plateau lowers the rate that the log shows
        assert [each["dense"] for each in logged] == [0.1, 0.1, 0.05, 0.025]


def test_a_run_without_tables_needs_no_optimizer_for_them(desk):
    one_tower = (
        "simple_multi_task: {task_towers: [{tower_name: t, label_name: click, mlp: {hidden_units: [4]},"
        " losses: [{binary_cross_entropy: {}}], metrics: [{auc: {}}]}]}"
    )
    options = "num_buckets: 100, embedding_dim: 4}"
    ids = [
        f'  - id_feature: {{feature_name: {name}, expression: "{name}:{name}_id", {options}\n'
        for name in ("user", "item")
    ]
    desk.write_run(
        ("".join(ids), ""),
        ("    - {group_name: wide, group_type: WIDE, feature_names: [user, item]}\n", ""),
        (
            "{group_name: deep, group_type: DEEP, feature_names: [user, item, price]}",
            "{group_name: all, feature_names: [price]}",
        ),
        ("deepfm: {deep: {hidden_units: [4]}}", one_tower),
        ("  losses: [{binary_cross_entropy: {}}]\n  metrics: [{auc: {}}]\n", ""),
        (f"  sparse_optimizer: {SPARSE}\n", ""),
    )

    train(desk)
    train(desk, "--set", "train_config.num_epochs=2", "--continue_train")

    assert desk.penstock("eval", "run.yaml").exit_code == 0
