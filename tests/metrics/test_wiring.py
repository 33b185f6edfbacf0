"""Metrics of a run file find the predictions and labels they need."""

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.metrics import build_metrics
from penstock.metrics.sections import MetricConfig


def configs(*metrics):
    return [MetricConfig.model_validate(metric) for metric in metrics]


def test_metrics_are_built_by_name_and_fed_from_named_predictions():
    metrics = build_metrics(configs({"auc": {}}, {"log_loss": {}}), ["logits", "probs"], label="clicked")

    for metric in metrics.values():
        metric.update({"probs": np.array([0.25, 0.75])}, {"clicked": np.array([0, 1])})

    assert {name: metric.compute() for name, metric in metrics.items()} == {
        "auc": 1.0,
        "log_loss": pytest.approx(-np.log(0.75)),
    }


def test_two_classes_give_probs1():
    metrics = build_metrics(configs({"auc": {}}), ["logits", "probs1"], label="y")

    assert metrics["auc"].prediction == "probs1"


def test_a_tower_is_a_suffix_of_predictions_and_results():
    metrics = build_metrics(configs({"auc": {}}), ["probs_ctr", "probs_cvr"], label="buy", tower="cvr")

    assert (metrics["auc_cvr"].prediction, metrics["auc_cvr"].label) == ("probs_cvr", "buy")


def test_thresholds_count_only_when_they_are_written():
    written, absent = (
        build_metrics(configs(metric), ["probs"], label="y")["auc"].metric.num_bins
        for metric in ({"auc": {"thresholds": 200}}, {"auc": {}})
    )

    assert (written, absent) == (200, 100_000)


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        build_metrics(configs({"auc": {}}, {"recall_at_k": {}}), ["y"], label="y")

    assert [str(problem) for problem in caught.value.problems] == [
        "model_config.metrics[0].auc: 'auc' needs the prediction probs or probs1; this model gives y",
        "model_config.metrics[1].recall_at_k: not available yet; available: auc, log_loss",
    ]


def test_the_same_metric_twice_is_a_problem():
    with pytest.raises(ConfigError, match=r"metrics\[1\].auc: 'auc' is there twice"):
        build_metrics(configs({"auc": {}}, {"auc": {"thresholds": 10}}), ["probs"], label="y")
