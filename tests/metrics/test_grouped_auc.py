"""GroupedAUC against scikit-learn, group by group; keys and names of groups."""

import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.grouped import group_keys
from penstock.metrics.grouped_auc import GroupedAUC, GroupNames
from penstock.metrics.metric import gathered, reduced
from penstock.runtime.collectives import OneProcess
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


def test_bad_rows_are_refused():
    with pytest.raises(DataError, match="grouped_auc: 2 predictions for 2 labels and 1 groups"):
        GroupedAUC().update([1, 2], [0, 1], [1])
    with pytest.raises(DataError, match="grouped_auc: the label 2 is neither 0 nor 1"):
        GroupedAUC().update([1, 2], [0, 2], [1, 1])
    with pytest.raises(DataError, match="weight is 'clicks'; it is one of none, rows, positives"):
        GroupedAUC("clicks")


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

    with pytest.warns(ResourceWarning, match="penstock-metrics-"):
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


def test_a_torn_state_is_refused():
    state = GroupedAUC().state_dict()
    with pytest.raises(CheckpointError, match="grouped_auc: the saved key, pred and target differ in length"):
        GroupedAUC().load_state_dict({**state, "pred": np.zeros(3)})
    with pytest.raises(CheckpointError, match="the saved totals are of another version of this metric"):
        GroupedAUC().load_state_dict({**state, "finished": np.zeros(3)})
    with pytest.raises(CheckpointError, match="grouped_auc: the saved state has"):
        GroupedAUC().load_state_dict({"foreign": np.zeros(3)})


def largest_by_definition(preds, target, groups, most):
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

    assert metric.largest_groups(20) == largest_by_definition(preds, target, groups, 20)
    metric.close()


def test_a_merged_metric_knows_the_groups_of_both():
    one, other = GroupedAUC(), GroupedAUC()
    one.update([0.1, 0.9], [0, 1], ["a", "a"])
    other.update([0.9, 0.2, 0.1], [0, 1, 1], ["b", "b", "b"])
    one.merge(other)

    assert one.largest_groups(5) == [("b", 3, 0.0), ("a", 2, 1.0)]


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (np.array([-3, 7]), [-3, 7]),
        (np.array([2**64 - 1], np.uint64), [2**64 - 1]),
        (torch.tensor([5, -1]), [5, -1]),
        ([4, 9], [4, 9]),
        (np.array([True, False]), [1, 0]),
        (pa.array([True, False]), ["True", "False"]),
        (pa.array([4, None]), [4, "null"]),
        (pa.array(["anna", None]), ["anna", "null"]),
        (pa.chunked_array([["anna"], ["bob"]]), ["anna", "bob"]),
        (pa.array(["anna", "bob"]).dictionary_encode(), ["anna", "bob"]),
        (np.array(["anna", "bob"]), ["anna", "bob"]),
    ],
)
def test_ids_that_were_seen_are_known_again(groups, names):
    known = GroupNames()
    known.add(groups)

    assert known.of(group_keys(groups, "test").tolist()) == names


def test_a_text_beyond_the_rows_that_are_remembered_is_called_by_its_hash():
    known = GroupNames(max_rows=1)
    texts = pa.array(["anna", "bob"])
    known.add(texts)
    known.add(texts)
    keys = group_keys(texts, "test").tolist()

    assert known.of(keys) == ["anna", f"{keys[1]:#018x}"]


IDS = [3, -1, 3, 2**40]


def keys_of(groups):
    return group_keys(groups, "grouped_auc").tolist()


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        np.array(IDS),
        torch.tensor(IDS),
        pa.array(IDS),
        pa.chunked_array([IDS[:1], IDS[1:]]),
        pa.array(IDS).dictionary_encode(),
    ],
    ids=["list", "numpy", "torch", "arrow", "chunked", "dictionary"],
)
def test_integers_are_their_own_keys(ids):
    assert keys_of(ids) == [3, 2**64 - 1, 3, 2**40]


def test_integers_of_any_width_are_the_same_keys():
    narrow = np.array([5, -7], np.int8)

    assert keys_of(narrow) == keys_of(narrow.astype(np.int64)) == keys_of(pa.array([5, -7], pa.int16()))


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        lambda texts: np.array(texts, dtype=object),
        lambda texts: pa.array(texts, pa.string()),
        lambda texts: pa.array(texts, pa.large_string()),
        lambda texts: pa.array(["before", *texts]).slice(1),
        lambda texts: pa.array(texts).dictionary_encode(),
    ],
    ids=["list", "numpy", "objects", "string", "large string", "slice", "dictionary"],
)
def test_texts_are_hashed_by_their_characters(make):
    texts = ["user-1", "", "user-1", "é", "user-2"]
    keys = keys_of(make(texts))

    assert keys == keys_of(texts)
    assert keys[0] == keys[2]
    assert len(set(keys)) == 4


def test_nulls_are_one_group():
    for ids in (pa.array([1, None, 0, None]), pa.array(["a", None, "", None])):
        keys = keys_of(ids)
        assert keys[1] == keys[3]
        assert len(set(keys)) == 3


def test_ids_of_two_kinds_are_refused():
    with pytest.raises(DataError, match="grouped_auc: the groups are not ids of one kind"):
        keys_of(["a", 1])
