"""The largest groups against a loop over all of them."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from penstock.metrics.grouped_auc import GroupedAUC


def by_definition(preds, target, groups, most):
    found = []
    for group in np.unique(groups):
        mine = groups == group
        both = target[mine].any() and not target[mine].all()
        area = pytest.approx(roc_auc_score(target[mine], preds[mine]), abs=1e-12) if both else None
        found.append((int(group), int(mine.sum()), area))
    return sorted(found, key=lambda each: (-each[1], each[0]))[:most]


def test_the_largest_come_first_and_one_class_has_no_area():
    metric = GroupedAUC()
    metric.update([0.1, 0.9, 0.5, 0.3, 0.4, 0.8], [0, 1, 0, 1, 1, 0], ["a", "a", "a", "b", "b", "c"])

    assert metric.largest_groups(2) == [("a", 3, 1.0), ("b", 2, None)]


@pytest.mark.parametrize("limit_bytes", [1 << 20, 1000], ids=["in memory", "on disk"])
def test_groups_that_come_back_in_many_batches_are_whole(limit_bytes, tmp_path):
    generator = np.random.default_rng(0)
    preds, groups = generator.random(2000), generator.geometric(0.02, 2000)
    target = generator.random(2000) < preds
    metric = GroupedAUC(limit_bytes=limit_bytes, folder=tmp_path)
    for rows in np.split(np.arange(2000), 20):
        metric.update(preds[rows], target[rows], groups[rows])

    assert metric.largest_groups(20) == by_definition(preds, target, groups, 20)
    metric.close()


def test_a_merged_metric_knows_the_groups_of_both():
    one, other = GroupedAUC(), GroupedAUC()
    one.update([0.1, 0.9], [0, 1], ["a", "a"])
    other.update([0.9, 0.2, 0.1], [0, 1, 1], ["b", "b", "b"])
    one.merge(other)

    assert one.largest_groups(5) == [("b", 3, 0.0), ("a", 2, 1.0)]


def test_without_rows_there_are_no_groups():
    metric = GroupedAUC()
    metric.update([0.1, 0.9], [0, 1], [1, 1])
    metric.reset()

    assert metric.largest_groups(5) == []
