"""GroupedAUC against scikit-learn, group by group."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.reducing import gathered, reduced
from penstock.runtime.collectives import OneProcess
from penstock.tensors.sections.metrics import GroupedAUC as GroupedAucSection
from tests.metrics.ranks import on_ranks

PREDS = np.arange(1, 9) / 10
TARGET = np.array([1, 0, 1, 0, 0, 0, 1, 1])
GROUPS = np.array([1, 2, 2, 1, 3, 3, 4, 4])

few_values = st.sampled_from([-math.inf, -3.0, -0.0, 0.0, 0.5, 0.5 + 1e-12, 1e300, math.inf])
some_rows = st.lists(st.tuples(few_values, st.booleans(), st.integers(-2, 4)), max_size=60)


def grouped_auc_of(preds, target, groups, **options):
    metric = GroupedAUC(**options)
    metric.update(preds, target, groups)
    return metric.compute()


def columns(rows):
    return (
        np.array([row[0] for row in rows], dtype=np.float64),
        np.array([row[1] for row in rows], dtype=bool),
        np.array([row[2] for row in rows], dtype=np.int64),
    )


def random_rows(num_rows, num_groups, seed=0):
    generator = np.random.default_rng(seed)
    preds = generator.integers(0, 20, num_rows).astype(np.float32) / 20
    return preds, generator.random(num_rows) < preds, generator.integers(0, num_groups, num_rows)


def by_definition(preds, target, groups, weight="none"):
    """One group after the other; scikit-learn ranks values, so that infinities become large ones."""
    finite = np.searchsorted(np.unique(preds), preds)
    areas, weights = [], []
    for group in np.unique(groups):
        labels = target[groups == group]
        if labels.any() and not labels.all():
            areas.append(roc_auc_score(labels, finite[groups == group]))
            weights.append({"none": 1, "rows": len(labels), "positives": labels.sum()}[weight])
    return np.average(areas, weights=weights) if areas else math.nan


def test_groups_with_one_class_do_not_count():
    assert grouped_auc_of(PREDS, TARGET, GROUPS) == 0.5


@pytest.mark.parametrize("weight", ["none", "rows", "positives"])
def test_every_group_is_exact_with_ties_half(weight):
    rows = random_rows(1500, 60)

    assert grouped_auc_of(*rows, weight=weight) == pytest.approx(by_definition(*rows, weight), abs=1e-12)


@settings(max_examples=40)
@given(some_rows)
def test_infinite_close_and_equal_predictions_rank_as_they_are(rows):
    preds, target, groups = columns(rows)

    assert grouped_auc_of(preds, target, groups) == pytest.approx(
        by_definition(preds, target, groups), abs=1e-12, nan_ok=True
    )


def test_float32_predictions_keep_their_order_below_zero():
    preds = np.array([-2, -1, -0.0, 0.0, 1, 2], np.float32)

    assert grouped_auc_of(preds, [0, 0, 1, 0, 1, 1], np.zeros(6, int)) == (9 - 0.5) / 9


@pytest.mark.parametrize(
    ("preds", "target", "reason"),
    [
        ([], [], "no rows"),
        ([math.nan], [1], "no rows"),
        ([0.5], [1], "no group with both classes"),
        ([0.5, 0.6], [0, 0], "no group with both classes"),
    ],
)
def test_without_a_group_that_counts_it_is_undefined(preds, target, reason):
    metric = GroupedAUC()
    metric.update(preds, target, np.zeros(len(preds), int))

    for found in (metric, metric.reduced(OneProcess())):
        assert math.isnan(found.compute())
        assert found.undefined_because == reason


def test_it_says_how_many_groups_the_mean_is_over():
    metric = GroupedAUC()
    assert metric.remark is None

    metric.update(PREDS, TARGET, GROUPS)
    for found in (metric, metric.reduced(OneProcess())):
        assert found.remark == "2 of 4 groups have both classes"

    metric.update(np.zeros(2000), np.tile([0, 1], 1000), np.repeat(np.arange(1000, 2000), 2))
    assert metric.remark == "1,002 of 1,004 groups have both classes"


def test_a_mean_over_one_group_says_so_and_no_mean_says_nothing():
    metric = GroupedAUC()
    metric.update([0.5], [1], [7])
    assert metric.remark is None  # undefined_because has the reason

    metric.update([0.4], [0], [7])
    assert metric.remark == "1 of 1 group has both classes"


def test_nan_predictions_are_counted_and_left_out():
    metric = GroupedAUC()
    metric.update([0.1, math.nan, 0.3], [0, 0, 1], ["a", "a", "a"])

    assert (metric.compute(), metric.num_left_out) == (1.0, 1)


def test_bad_rows_are_refused():
    with pytest.raises(DataError, match="grouped_auc: 2 predictions for 2 labels and 1 groups"):
        GroupedAUC().update([1, 2], [0, 1], [1])
    with pytest.raises(DataError, match="grouped_auc: the label 2 is neither 0 nor 1"):
        GroupedAUC().update([1, 2], [0, 2], [1, 1])
    with pytest.raises(DataError, match="weight is 'clicks'; it is one of none, rows, positives"):
        GroupedAUC("clicks")


def test_torch_tensors_are_read():
    preds = torch.tensor(PREDS, dtype=torch.bfloat16, requires_grad=True)

    assert grouped_auc_of(preds, torch.tensor(TARGET), torch.tensor(GROUPS)) == 0.5


@settings(max_examples=50)
@given(some_rows, st.integers(0, 60), st.sampled_from([1 << 20, 200]))
def test_merging_the_parts_of_any_split_gives_the_whole(rows, cut, limit_bytes):
    preds, target, groups = columns(rows)
    left, right = GroupedAUC(limit_bytes=limit_bytes), GroupedAUC(limit_bytes=limit_bytes)
    left.update(preds[:cut], target[:cut], groups[:cut])
    right.update(preds[cut:], target[cut:], groups[cut:])

    left.merge(right)

    whole = grouped_auc_of(preds, target, groups)
    assert left.compute() == pytest.approx(whole, abs=1e-12, nan_ok=True)


def test_rows_beyond_the_limit_go_to_disk_and_leave_with_the_metric(tmp_path):
    preds, target, groups = random_rows(5000, 60)
    metric = GroupedAUC(limit_bytes=10_000, folder=tmp_path)
    for start in range(0, 5000, 500):
        rows = slice(start, start + 500)
        values = preds[rows] if start < 2500 else preds[rows].astype(np.float64)
        metric.update(values, target[rows], groups[rows])

    on_disk = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert on_disk > 40_000
    assert metric.compute() == pytest.approx(by_definition(preds, target, groups), abs=1e-12)
    metric.update(preds, target, groups)
    assert metric.compute() == pytest.approx(
        by_definition(np.tile(preds, 2), np.tile(target, 2), np.tile(groups, 2)), abs=1e-12
    )
    metric.close()
    assert list(tmp_path.iterdir()) == []


def test_a_forgotten_metric_leaves_no_files(tmp_path):
    metric = GroupedAUC(limit_bytes=100, folder=tmp_path)
    metric.update(*random_rows(100, 10))
    assert len(list(tmp_path.iterdir())) == 1

    with pytest.warns(ResourceWarning, match="penstock-groups-"):
        del metric

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit_bytes", [1 << 20, 5000])
@pytest.mark.parametrize("way", [reduced, gathered])
def test_ranks_with_other_numbers_of_rows_and_none_agree_with_one(way, limit_bytes, tmp_path):
    preds, target, groups = random_rows(1000, 120, seed=2)
    preds[3] = math.nan
    cuts = [0, 600, 1000, 1000]

    def evaluate(rank, collectives):
        metric = GroupedAUC(limit_bytes=limit_bytes, folder=tmp_path)
        rows = slice(cuts[rank], cuts[rank + 1])
        metric.update(preds[rows], target[rows], groups[rows])
        before = metric.compute()
        whole = way(metric, collectives)
        unchanged = math.isnan(before) or metric.compute() == before
        found = whole.compute(), whole.num_left_out, whole.remark, unchanged
        metric.close()
        whole.close()
        return found

    known = np.arange(1000) != 3
    expected = pytest.approx(by_definition(preds[known], target[known], groups[known]), abs=1e-12)
    remark = "118 of 120 groups have both classes"
    assert on_ranks(3, evaluate) == [(expected, 1, remark, True)] * 3


def test_ranks_that_may_hold_different_numbers_of_bytes_exchange_alike(tmp_path):
    preds, target, groups = random_rows(1000, 120, seed=2)
    limits_bytes = [1 << 20, 10_000]

    def evaluate(rank, collectives):
        metric = GroupedAUC(limit_bytes=limits_bytes[rank], folder=tmp_path)
        metric.update(preds[rank::2], target[rank::2], groups[rank::2])
        return metric.reduced(collectives).compute()

    assert on_ranks(2, evaluate) == [pytest.approx(by_definition(preds, target, groups), abs=1e-12)] * 2


def test_a_saved_metric_goes_on_where_it_was():
    before, after = GroupedAUC(), GroupedAUC()
    before.update(PREDS, TARGET, GROUPS)
    after.load_state_dict(before.state_dict())
    for metric in (before, after):
        metric.update([0.5, math.nan], [0, 1], [4, 1])

    np.testing.assert_equal(after.state_dict(), before.state_dict())
    assert after.compute() == before.compute() == pytest.approx(2 / 3)


def test_a_torn_state_is_refused():
    state = GroupedAUC().state_dict()
    with pytest.raises(CheckpointError, match="grouped_auc: the saved key, pred and target differ in length"):
        GroupedAUC().load_state_dict({**state, "pred": np.zeros(3)})
    with pytest.raises(CheckpointError, match="the saved totals are of another version of this metric"):
        GroupedAUC().load_state_dict({**state, "finished": np.zeros(3)})
    with pytest.raises(CheckpointError, match="grouped_auc: the saved state has"):
        GroupedAUC().load_state_dict({"foreign": np.zeros(3)})


def test_reset_forgets():
    metric = GroupedAUC()
    metric.update([0.2, math.nan], [1, 0], [1, 1])
    metric.reset()

    assert (metric.undefined_because, metric.num_left_out) == ("no rows", 0)


def test_the_run_file_decides():
    assert GroupedAUC.from_section(GroupedAucSection(grouping_key="user", weight="rows")).weight == "rows"
