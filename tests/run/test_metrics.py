"""The metrics of a run: built for every task, grouped by columns, within their memory."""

import pytest
import yaml

import penstock
from penstock.config.errors import BudgetExceeded, ConfigError
from penstock.config.sizes import GIB, MIB
from penstock.metrics.exact_auc import ExactAUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.row_means import Accuracy
from penstock.metrics.wiring import BoundMetric
from penstock.metrics.xauc import XAUC
from penstock.run.data import group_columns
from penstock.run.run_config import load_run
from penstock.run.training import metrics_of, share_metrics
from penstock.runtime.budget import MemoryBudget
from penstock.training.task_metrics import TaskMetrics
from tests.cli.desk import RUN_FILE

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

    metrics = metrics_of(model, "metrics")

    assert {name: (metric.prediction, metric.label) for name, metric in metrics.items()} == {
        "auc_click": ("probs_click", "click"),
        "mean_absolute_error_seconds": ("y_seconds", "seconds"),
        "grouped_xauc_seconds": ("y_seconds", "seconds"),
    }
    assert list(metrics_of(model, "train_metrics")) == ["auc_click"]


def test_a_metric_that_a_task_cannot_have_is_told_with_its_tower():
    with pytest.raises(ConfigError) as caught:
        penstock.build_model(two_towers(metrics=[{"auc": {}}]))

    assert str(caught.value) == (
        "model_config.simple_multi_task.task_towers[1].metrics[0].auc: 'auc' needs the prediction probs1_seconds or "
        "probs_seconds; this model gives logits_click, probs_click, y_seconds"
    )


BY_USER = {"model_config.metrics": [{"auc": {}}, {"grouped_auc": {"grouping_key": "user"}}]}
BY_ITEM_COLUMN = {"model_config.metrics": [{"grouped_auc": {"grouping_key": "item_id"}}]}


def test_a_grouping_key_is_a_feature_or_a_column_and_calls_no_other_feature_unread(desk, caplog):
    caplog.set_level("INFO")
    by_user, by_item = (load_run(desk.folder / "run.yaml", sets) for sets in (BY_USER, BY_ITEM_COLUMN))

    assert group_columns(by_user, training=False) == {"user": "user_id"}
    assert group_columns(by_item, training=False) == {"item_id": "item_id"}
    assert group_columns(by_user, training=True) == {}
    assert not [message for message in caplog.messages if "not read" in message]


TEN_MILLION = 10_000_000


def bound(**metrics):
    return {name: BoundMetric(name, metric, "probs", "click") for name, metric in metrics.items()}


def planned(limit_bytes, metrics, num_rows=TEN_MILLION):
    return share_metrics(MemoryBudget(limit_bytes), "evaluation metrics", metrics, num_rows)


def test_less_than_the_need_is_refused_with_the_metric_that_needs_most():
    with pytest.raises(BudgetExceeded) as caught:
        planned(512 * MIB, bound(xauc=XAUC(exact=True), grouped_auc=GroupedAUC()))

    assert str(caught.value) == (
        "evaluation metrics need at least 710.6MiB, xauc 686.6MiB of it, but only 512MiB of 512MiB are left; "
        "leave out exact of metrics.xauc, or raise memory.limit"
    )


def test_metrics_get_what_they_can_use_or_a_quarter_of_what_is_left_and_never_less_than_the_need():
    metrics = bound(grouped_auc=GroupedAUC(), auc=ExactAUC())

    ample = planned(64 * GIB, metrics)
    assert ample.limit_bytes == (240_000_000 + 16 * MIB) + 256 * MIB
    assert ample.setting == "metrics.auc"
    assert planned(400 * MIB, metrics).limit_bytes == 100 * MIB
    short = planned(100 * MIB, metrics)
    assert short.limit_bytes == 40 * MIB
    assert planned(GIB, bound(accuracy=Accuracy())) is None  # a few sums fit into what stays free
    TaskMetrics(metrics, share=short, num_rows=TEN_MILLION)
    assert metrics["grouped_auc"].metric._rows.limit_bytes == 8 * MIB
    assert metrics["auc"].metric._limit_bytes == 4 * MIB
