"""Metrics of tasks: built from the run file for every task, and told whole batches through the model."""

import pyarrow as pa
import pytest
import yaml

import penstock
from penstock.config.errors import ConfigError
from penstock.run.metrics import evaluation_metrics, training_metrics
from tests.cli.desk import CLICKS, RUN_FILE, Desk

TOWERS = [
    {
        "tower_name": "click",
        "label_name": "click",
        "losses": [{"binary_cross_entropy": {}}],
        "metrics": [{"auc": {}}],
        "train_metrics": [{"auc": {}, "decay_step": 1}],
    },
    {
        "tower_name": "seconds",
        "label_name": "seconds",
        "losses": [{"l2_loss": {}}],
        "metrics": [{"mean_absolute_error": {}}, {"grouped_xauc": {"grouping_key": "user"}}],
    },
]
ROWS = pa.table({**CLICKS, "seconds": [0.0, 4.0, 0.0, 2.0, 0.0, 8.0]})


def two_towers(**changes):
    """The run file of the desk with a model of two tasks; keys of the second tower by name."""
    run = yaml.safe_load(RUN_FILE)
    run["data_config"]["label_fields"] = ["click", "seconds"]
    run["model_config"] = {
        "feature_groups": [{"group_name": "all", "feature_names": ["user", "item", "price"]}],
        "simple_multi_task": {"task_towers": [TOWERS[0], {**TOWERS[1], **changes}]},
    }
    return penstock.RunConfig.model_validate(run)


def test_every_task_has_its_metrics_under_names_that_end_in_its_tower():
    model = penstock.build_model(two_towers())

    metrics = evaluation_metrics(model)

    assert {name: (metric.prediction, metric.label) for name, metric in metrics.items()} == {
        "auc_click": ("probs_click", "click"),
        "mean_absolute_error_seconds": ("y_seconds", "seconds"),
        "grouped_xauc_seconds": ("y_seconds", "seconds"),
    }
    assert list(training_metrics(model)) == ["auc_click"]


def test_a_metric_that_a_task_cannot_have_is_told_with_its_tower():
    with pytest.raises(ConfigError) as caught:
        penstock.build_model(two_towers(metrics=[{"auc": {}}]))

    assert str(caught.value) == (
        "model_config.simple_multi_task.task_towers[1].metrics[0].auc: 'auc' needs the prediction probs1_seconds or "
        "probs_seconds; this model gives logits_click, probs_click, y_seconds"
    )


def test_a_model_counts_its_metrics_in_a_loop_of_ones_own():
    run = two_towers()
    model = penstock.build_model(run)
    batch = penstock.build_batch(run, ROWS, reserved_columns=["user_id"])
    predictions = model.predict(batch)
    model.update_metric(predictions, batch)
    model.update_train_metric(predictions, batch)

    values = model.compute_metric()
    expected = (predictions["y_seconds"] - batch.labels["seconds"]).abs().mean().item()
    assert values["mean_absolute_error_seconds"] == pytest.approx(expected)
    assert 0 <= values["auc_click"] <= 1
    assert model.compute_train_metric()["auc_click"] == pytest.approx(values["auc_click"], abs=0.05)
    assert str(model.compute_metric()["auc_click"]) == "nan"


def test_train_metrics_are_in_the_log(desk: Desk):
    desk.write_run(
        ("metrics: [{auc: {}}]", "metrics: [{auc: {}}]\n  train_metrics: [{auc: {}, decay_step: 1}]")
    )
    done = desk.penstock("train", "run.yaml", "--set", "train_config.log_step_count_steps=1")

    assert done.exit_code == 0, done.stderr
    assert '"train_metrics": {"auc":' in (desk.folder / "run/log.jsonl").read_text()
