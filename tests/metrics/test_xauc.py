"""XAUC and GroupedXAUC against their definition: every pair looked at."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.metrics import XAUC, GroupedXAUC

PREDS = np.arange(1, 9) / 10
TARGET = np.array([0.2, 0.3, 0.5, 0.4, 0.3, 0.2, 0.8, 0.9])
few_values = st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 0.5000001, 2.0, math.inf])
rows_with_ties = st.lists(st.tuples(few_values, st.integers(0, 4), st.integers(0, 4)), max_size=40)


def xauc_of(preds, target, **options):
    metric = XAUC(**options)
    metric.update(preds, target)
    return metric.compute()


def by_definition(preds, target):
    """Every pair, one after the other."""
    pairs = [(i, j) for j in range(len(preds)) for i in range(j)]
    right = sum(
        (preds[i] < preds[j] and target[i] < target[j]) or (preds[i] > preds[j] and target[i] > target[j])
        for i, j in pairs
    )
    return right / len(pairs) if pairs else math.nan


def columns(rows):
    return [
        np.array([row[index] for row in rows], dtype) for index, dtype in enumerate((float, np.float32, int))
    ]


@pytest.mark.parametrize("options", [{}, {"in_batch": True}, {"exact": True}, {"max_pairs": 28}])
def test_the_example_has_19_of_28_pairs_in_the_right_order(options):
    assert xauc_of(PREDS, TARGET, **options) == 19 / 28


@settings(max_examples=100)
@given(rows_with_ties)
def test_counting_equals_looking_at_every_pair(rows):
    preds, target, _ = columns(rows)

    assert xauc_of(preds, target) == pytest.approx(by_definition(preds, target), abs=1e-15, nan_ok=True)


@pytest.mark.parametrize(("pair_weight", "expected"), [(True, (1 + 0) / (1 + 3)), (False, (1 + 0) / 2)])
def test_batches_count_by_their_pairs_or_alike(pair_weight, expected):
    metric = XAUC(in_batch=True, pair_weight=pair_weight)
    metric.update([1, 2], [1, 2])
    metric.update([1, 2, 3], [3, 2, 1])
    metric.update([5], [5])

    assert metric.compute() == expected


def test_more_rows_than_are_kept_leave_a_uniform_sample_however_they_are_cut_into_batches():
    preds, target, _ = random_rows(20_000, 1)
    whole, metric = XAUC(max_rows=2000), XAUC(max_rows=2000)
    whole.update(preds, target)
    for start in range(0, 20_000, 700):
        metric.update(preds[start : start + 700], target[start : start + 700])
    kept = metric.state_dict()

    np.testing.assert_equal(kept, whole.state_dict())
    assert metric.compute() == pytest.approx(xauc_of(preds, target, exact=True), abs=0.02)
    num_kept = len(kept["preds"])
    assert metric.remark == f"of {num_kept:,} of 20,000 rows"
    assert 1000 < num_kept <= 2000
    assert np.count_nonzero(np.isin(preds[:10_000], kept["preds"])) == pytest.approx(num_kept / 2, rel=0.1)


@pytest.mark.parametrize(
    ("metric", "groups", "reason"),
    [
        (XAUC(), [], "one row only"),
        (XAUC(in_batch=True), [], "no batch with two rows"),
        (GroupedXAUC(), [np.zeros(2, int)], "no group with two rows or more"),
    ],
)
def test_without_a_pair_it_is_undefined(metric, groups, reason):
    metric.update([math.nan, 1.0], np.zeros(2), *groups)

    assert math.isnan(metric.compute())
    assert metric.undefined_because == reason


@pytest.mark.parametrize("max_rows", [500, 4000])
def test_a_saved_sample_goes_on_by_the_same_lots_when_it_may_keep_other_rows(max_rows):
    before, whole, after = XAUC(max_rows=1000), XAUC(max_rows=max_rows), XAUC(max_rows=max_rows)
    before.update(np.arange(10_000.0), np.zeros(10_000))
    whole.update(np.arange(20_000.0), np.zeros(20_000))

    after.load_state_dict(before.state_dict())
    after.update(np.arange(10_000.0, 20_000.0), np.zeros(10_000))

    kept = after.state_dict()["preds"]
    assert set(kept) <= set(whole.state_dict()["preds"])
    assert np.count_nonzero(kept < 10_000) == pytest.approx(len(kept) / 2, rel=0.15)


def grouped_xauc_of(preds, target, groups, **options):
    metric = GroupedXAUC(**options)
    metric.update(preds, target, groups)
    return metric.compute()


def random_rows(num_rows, num_groups):
    generator = np.random.default_rng(0)
    target = generator.random(num_rows)
    return target + generator.normal(0, 0.3, num_rows), target, generator.integers(0, num_groups, num_rows)


def grouped_by_definition(preds, target, groups):
    shares, sizes = [], []
    for group in np.unique(groups):
        p, t = preds[groups == group], target[groups == group]
        if len(p) > 1:
            rising = (p[:, None] < p) & (t[:, None] < t)
            shares.append(rising.sum() / (len(p) * (len(p) - 1) / 2))
            sizes.append(len(p))
    return np.average(shares, weights=sizes) if shares else math.nan


@settings(max_examples=60)
@given(rows_with_ties)
def test_all_pairs_of_groups_are_counted_whatever_others_would_draw(rows):
    preds, target, groups = columns(rows)

    assert grouped_xauc_of(preds, target, groups, max_pairs_per_group=1) == pytest.approx(
        grouped_by_definition(preds, target, groups), abs=1e-12, nan_ok=True
    )


@pytest.mark.parametrize("limit_bytes", [1 << 20, 1000], ids=["in memory", "on disk"])
def test_groups_of_one_row_and_of_thousands(limit_bytes):
    generator = np.random.default_rng(0)
    groups = generator.geometric(0.001, 6000) % 97 * 10**17  # as wide as hashes
    preds, target, _ = random_rows(6000, 1)
    rows = preds, target.round(2), groups

    assert grouped_xauc_of(*rows, limit_bytes=limit_bytes) == pytest.approx(
        grouped_by_definition(*rows), abs=1e-12
    )
