"""The share of the metrics in the plan."""

import pytest

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import GIB, MIB
from penstock.metrics.accuracy import Accuracy
from penstock.metrics.exact_auc import ExactAUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.wiring import BoundMetric
from penstock.metrics.xauc import XAUC
from penstock.run.metrics import bound_metrics, share_metrics
from penstock.runtime.budget import MemoryBudget

TEN_MILLION = 10_000_000


def bound(**metrics):
    return {name: BoundMetric(name, metric, "probs", "click") for name, metric in metrics.items()}


def planned(limit_bytes, metrics, num_rows=TEN_MILLION):
    budget = MemoryBudget(limit_bytes)
    share_metrics(budget, "evaluation metrics", metrics, num_rows)
    return budget.shares.get("evaluation metrics")


def test_metrics_get_what_they_can_use_where_there_is_room():
    share = planned(64 * GIB, bound(grouped_auc=GroupedAUC(), auc=ExactAUC()))

    assert share.limit_bytes == (240_000_000 + 16 * MIB) + 256 * MIB
    assert share.setting == "metrics.auc"


def test_a_quarter_of_what_is_left_where_room_is_short_and_never_less_than_the_need():
    metrics = bound(grouped_auc=GroupedAUC(), auc=ExactAUC())

    assert planned(400 * MIB, metrics).limit_bytes == 100 * MIB
    assert planned(100 * MIB, metrics).limit_bytes == 40 * MIB


def test_a_few_sums_find_room_in_what_stays_free():
    assert planned(GIB, bound(accuracy=Accuracy())) is None
    assert planned(GIB, {}) is None


@pytest.mark.parametrize(
    ("metrics", "need"),
    [
        (
            {"xauc": XAUC(exact=True), "grouped_auc": GroupedAUC()},
            "need 786.9MiB at the least, xauc 762.9MiB of it, but only 512MiB of 512MiB are left; leave out exact of",
        ),
        (
            {f"grouped_auc_{tower}": GroupedAUC() for tower in range(25)},
            "need 600MiB at the least, grouped_auc_0 24MiB of it, but only 512MiB of 512MiB are left; leave out",
        ),
    ],
)
def test_less_than_the_need_is_told_with_the_metric_that_needs_most(metrics, need):
    with pytest.raises(BudgetExceeded) as caught:
        planned(512 * MIB, bound(**metrics))

    most = next(iter(metrics))
    assert str(caught.value) == f"evaluation metrics {need} metrics.{most}, or raise memory.limit"


def test_every_metric_is_told_its_part():
    metrics = bound(grouped_auc=GroupedAUC(), auc=ExactAUC())
    share = planned(100 * MIB, metrics)

    bound_metrics(metrics, share, TEN_MILLION)

    assert metrics["grouped_auc"].metric._rows.limit_bytes == 8 * MIB
    assert metrics["auc"].metric._limit_bytes == 4 * MIB
