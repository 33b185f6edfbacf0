"""Metrics of a run file find the predictions and labels they need."""

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.metrics import BoundMetric, TrainMetricWrapper, build_metrics
from penstock.metrics.auc import DecayAUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.sections import Best, MetricConfig, TrainMetricConfig, best_value, metric_names


def configs(*metrics):
    return [MetricConfig.model_validate(metric) for metric in metrics]


def test_metrics_are_built_by_name_and_fed_from_named_predictions():
    metrics = build_metrics(configs({"auc": {}}, {"log_loss": {}}), ["logits", "probs"], label="clicked")

    for metric in metrics.values():
        metric.update({"probs": np.array([0.25, 0.75])}, {"clicked": np.array([0, 1])})

    assert {name: bound.metric.compute() for name, bound in metrics.items()} == {
        "auc": 1.0,
        "log_loss": pytest.approx(-np.log(0.75)),
    }


def test_two_classes_give_probs1_and_a_tower_is_a_suffix_of_predictions_and_results():
    available = ["logits_ctr", "probs_ctr", "probs_cvr", "probs1_cvr"]
    metrics = build_metrics(configs({"auc": {}}), available, label="buy", tower="cvr")

    assert (metrics["auc_cvr"].prediction, metrics["auc_cvr"].label) == ("probs1_cvr", "buy")


def test_a_metric_several_times_is_named_by_what_differs():
    several = configs(
        {"auc": {}},
        {"auc": {"thresholds": 200}},
        {"auc": {"exact": True}},
        {"grouped_auc": {"grouping_key": "user"}},
        {"grouped_auc": {"grouping_key": "item", "weight": "rows"}},
        {"accuracy": {}},
        {"ndcg_at_k": {"top_k": 3}},
        {"ndcg_at_k": {}},
    )

    names = metric_names(several)

    by_group = ["grouped_auc@user@none", "grouped_auc@item@rows"]
    assert names == ["auc", "auc@200", "auc@exact", *by_group, "accuracy", "ndcg@3", "ndcg@5"]
    assert {best_value(f"{name}_buy") for name in names} == {Best.max}
    assert metric_names(several[-1:]) == ["ndcg_at_k"]
    built = build_metrics(several[:2], ["probs_buy"], label="buy", tower="buy")
    assert list(built) == ["auc_buy", "auc@200_buy"]


def test_thresholds_count_only_when_they_are_written():
    written, absent = (
        build_metrics(configs(metric), ["probs"], label="y")["auc"].metric.state_dict()["counts"].shape[1]
        for metric in ({"auc": {"thresholds": 200}}, {"auc": {}})
    )

    assert (written, absent) == (200, 100_000)


def test_all_problems_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        build_metrics(configs({"auc": {}}, {"recall_at_k": {}}, {"xauc": {}}, {"xauc": {}}), ["y"], label="y")

    assert [str(problem) for problem in caught.value.problems] == [
        "model_config.metrics[0].auc: 'auc' needs the prediction probs1 or probs; this model gives y",
        "model_config.metrics[1].recall_at_k: 'recall_at_k' needs the prediction similarities; this model gives y",
        "model_config.metrics[3].xauc: 'xauc' is there twice; results are named by metric",
    ]


def train_configs(*metrics):
    return [TrainMetricConfig.model_validate(metric) for metric in metrics]


def test_train_metrics_fade_and_auc_becomes_a_decay_auc():
    metrics = build_metrics(
        train_configs({"auc": {}, "decay_step": 2}, {"accuracy": {}}), ["probs_ctr"], label="y", tower="ctr"
    )

    assert list(metrics) == ["auc_ctr", "accuracy_ctr"]
    assert all(isinstance(metric.metric, TrainMetricWrapper) for metric in metrics.values())
    assert isinstance(metrics["auc_ctr"].metric.metric, DecayAUC)
    for remark in ("of the first window, which is still open", None):
        metrics["auc_ctr"].update({"probs_ctr": np.array([0.25, 0.75])}, {"y": np.array([0, 1])})
        assert (metrics["auc_ctr"].metric.compute(), metrics["auc_ctr"].metric.remark) == (1.0, remark)


def test_a_metric_that_groups_gets_its_column_or_says_what_is_missing():
    metric = BoundMetric("grouped_auc", GroupedAUC(), "probs", "y", grouping_key="user_id")

    metric.update({"probs": [0.5]}, {"y": [1]}, {"user_id": ["ann"]})

    assert metric.metric.largest_groups(1) == [("ann", 1, None)]
    with pytest.raises(DataError, match="grouped_auc: needs the column 'user_id'; grouping columns: none"):
        metric.update({"probs": [0.5]}, {"y": [1]})


def test_a_custom_metric_that_fails_is_named(tmp_path, monkeypatch):
    (tmp_path / "own_metric.py").write_text(
        "from penstock.metrics.sums import RowMean\n\n\n"
        "class Wrong(RowMean):\n    def _row_values(self, preds, target):\n        return preds - targets\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    [metric] = build_metrics(
        configs({"custom_metric": {"import_path": "own_metric:Wrong"}}), ["probs"], label="clicked"
    ).values()

    with pytest.raises(DataError) as caught:
        metric.update({"probs": np.array([0.25])}, {"clicked": np.array([0])})

    assert str(caught.value) == (
        "custom_metric 'own_metric:Wrong': fails: NameError: name 'targets' is not defined"
    )
