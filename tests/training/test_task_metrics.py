"""Metrics of all tasks, fed batch by batch."""

import pyarrow as pa
import pytest
import torch

from penstock.config.errors import DataError
from penstock.metrics.auc import AUC
from penstock.metrics.exact_auc import ExactAUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.wiring import BoundMetric
from penstock.runtime.budget import Share
from penstock.tensors.batch import Batch, RecordBatchTensor
from penstock.training.task_metrics import TaskMetrics

CLICKS = Batch(
    labels={"click": torch.tensor([0.0, 1.0])},
    reserves=RecordBatchTensor(pa.RecordBatch.from_pydict({"user_id": ["ann", "bob"]})),
)
ANN_CLICKS = Batch(
    labels={"click": torch.tensor([1.0, 1.0])},
    reserves=RecordBatchTensor(pa.RecordBatch.from_pydict({"user_id": ["ann", "ann"]})),
)


def auc_metrics() -> TaskMetrics:
    return TaskMetrics({"auc": BoundMetric("auc", AUC(100), "probs", "click")})


def test_a_mean_over_groups_says_how_many_there_were():
    grouped = BoundMetric("grouped_auc", GroupedAUC(), "probs", "click", "user")
    metrics = TaskMetrics({"grouped_auc": grouped}, {"user": "user_id"})

    assert metrics.remarks() == {"grouped_auc": "no rows"}
    metrics.update({"probs": torch.tensor([0.2, 0.7])}, CLICKS)
    assert metrics.remarks() == {"grouped_auc": "no group with both classes"}

    metrics.update({"probs": torch.tensor([0.9, float("nan")])}, ANN_CLICKS)
    assert metrics.remarks() == {
        "grouped_auc": "1 of 2 groups have both classes; without 1 row whose prediction is NaN"
    }


def test_a_metric_with_other_options_starts_over_and_says_so(caplog):
    before = auc_metrics()
    before.update({"probs": torch.tensor([0.2, 0.7])}, CLICKS)
    after = TaskMetrics({"auc": BoundMetric("auc", AUC(50), "probs", "click")})

    after.load_state_dict(before.state_dict())

    assert after.remarks() == {"auc": "no rows"}
    assert "the metric 'auc' counted otherwise so far and starts over" in caplog.text


class Typo(AUC):
    @property
    def undefined_because(self):
        return {}["reason"]

    def load_state_dict(self, state):
        raise KeyError("counts")


@pytest.mark.parametrize(
    ("action", "problem"),
    [(TaskMetrics.remarks, "'reason'"), (lambda metrics: metrics.load_state_dict({"typo": {}}), "'counts'")],
)
def test_a_custom_metric_that_fails_is_named(action, problem):
    metrics = TaskMetrics({"typo": BoundMetric("typo", Typo(), "probs", "click", custom="own:Typo")})

    with pytest.raises(DataError, match=f"custom_metric 'own:Typo': fails: KeyError: {problem}"):
        action(metrics)


def test_the_share_of_the_plan_counts_what_metrics_hold_and_what_computing_takes():
    share = Share("evaluation metrics", 1000)
    metrics = TaskMetrics({"auc": BoundMetric("auc", ExactAUC(), "probs", "click")}, share=share, num_rows=2)

    metrics.update({"probs": torch.tensor([0.2, 0.7])}, CLICKS)
    assert share.peak_bytes == 2 * 24

    metrics.compute()
    assert (share.peak_bytes, share.held_bytes) == (4 * 2 * 24, 0)
