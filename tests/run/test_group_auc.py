"""The AUC of the largest groups, from the metrics of an evaluation into its record."""

from penstock.metrics.auc import AUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.wiring import BoundMetric
from penstock.training.evaluate import MAX_GROUPS, Evaluation, group_auc
from penstock.training.progress import TrainingProgress


def grouped(groups: list[int]) -> BoundMetric:
    metric = GroupedAUC()
    metric.update(
        [0.1, 0.9] * len(groups), [0, 1] * len(groups), [group for group in groups for _ in range(2)]
    )
    return BoundMetric("grouped_auc", metric, "probs", "click", "user_id")


def test_each_group_has_its_rows_and_its_auc() -> None:
    assert group_auc({"grouped_auc": grouped([3])}) == [{"group": 3, "rows": 2, "auc": 1.0}]


def test_many_groups_are_cut() -> None:
    assert len(group_auc({"grouped_auc": grouped(list(range(100)))})) == MAX_GROUPS


def test_metrics_without_groups_have_none() -> None:
    assert group_auc({"auc": BoundMetric("auc", AUC(), "probs", "click")}) == []


def test_the_record_holds_the_groups_where_there_are_some() -> None:
    groups = [{"group": 3, "rows": 2, "auc": 1.0}]
    record = Evaluation({}, {}, 2, group_auc=groups).as_record(TrainingProgress(), 1.0, saved=False)

    assert record["group_auc"] == groups
    assert "group_auc" not in Evaluation({}, {}, 2).as_record(TrainingProgress(), 1.0, saved=False)
