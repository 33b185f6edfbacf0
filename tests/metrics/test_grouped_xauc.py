"""GroupedXAUC against looking at every pair of every group."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.metrics.grouped_xauc import GroupedXAUC
from penstock.metrics.reducing import reduced
from penstock.tensors.sections.metrics import GroupedXAUC as GroupedXaucSection
from tests.metrics.ranks import on_ranks

values = st.sampled_from([-math.inf, -1.0, 0.0, 0.25, 3.0, math.inf])
some_rows = st.lists(st.tuples(values, st.integers(0, 3), st.integers(0, 4)), max_size=50)


def grouped_xauc_of(preds, target, groups, **options):
    metric = GroupedXAUC(**options)
    metric.update(preds, target, groups)
    return metric.compute()


def columns(rows):
    return tuple(
        np.array([row[index] for row in rows], dtype) for index, dtype in enumerate((float, float, int))
    )


def random_rows(num_rows, num_groups):
    generator = np.random.default_rng(0)
    target = generator.random(num_rows)
    return target + generator.normal(0, 0.3, num_rows), target, generator.integers(0, num_groups, num_rows)


def by_definition(preds, target, groups):
    shares, sizes = [], []
    for group in np.unique(groups):
        p, t = preds[groups == group], target[groups == group]
        if len(p) > 1:
            rising = (p[:, None] < p) & (t[:, None] < t)
            shares.append(rising.sum() / (len(p) * (len(p) - 1) / 2))
            sizes.append(len(p))
    return np.average(shares, weights=sizes) if shares else math.nan


def test_groups_count_by_their_rows_and_single_rows_not_at_all():
    preds, target = [1, 2, 3, 5, 6, 9], [1, 2, 3, 6, 5, 9]

    assert grouped_xauc_of(preds, target, [7, 7, 7, 8, 8, 9]) == (3 * 1.0 + 2 * 0.0) / 5


def test_it_says_how_many_groups_the_mean_is_over():
    metric = GroupedXAUC()
    metric.update([1, 2, 3, 5, 6, 9], [1, 2, 3, 6, 5, 9], [7, 7, 7, 8, 8, 9])

    assert metric.remark == "2 of 3 groups have two rows or more"


@settings(max_examples=60)
@given(some_rows)
def test_all_pairs_of_small_groups_are_taken(rows):
    preds, target, groups = columns(rows)

    assert grouped_xauc_of(preds, target, groups, max_pairs_per_group=2000) == pytest.approx(
        by_definition(preds, target, groups), abs=1e-12, nan_ok=True
    )


def test_drawn_pairs_come_close_and_repeat_with_the_seed():
    rows = random_rows(6000, 30)
    drawn = [grouped_xauc_of(*rows, max_pairs_per_group=500, seed=seed) for seed in (0, 0, 1)]

    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn == pytest.approx([by_definition(*rows)] * 3, abs=0.015)


def test_more_draws_than_are_held_at_a_time_change_nothing(monkeypatch):
    rows = random_rows(3000, 100)
    expected = grouped_xauc_of(*rows)
    monkeypatch.setattr("penstock.metrics.grouped_xauc._BLOCK_DRAWS", 250)

    assert grouped_xauc_of(*rows) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30)
@given(some_rows, st.integers(0, 50))
def test_even_drawn_pairs_do_not_depend_on_the_split(rows, cut):
    preds, target, groups = columns(rows)
    left, right = GroupedXAUC(5), GroupedXAUC(5)
    left.update(preds[cut:], target[cut:], groups[cut:])
    right.update(preds[:cut], target[:cut], groups[:cut])

    left.merge(right)

    whole = grouped_xauc_of(preds, target, groups, max_pairs_per_group=5)
    assert left.compute() == pytest.approx(whole, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("limit_bytes", [1 << 20, 5000])
def test_ranks_agree_with_one(limit_bytes, tmp_path):
    preds, target, groups = random_rows(2000, 60)
    expected = grouped_xauc_of(preds, target, groups, max_pairs_per_group=50)

    def evaluate(rank, collectives):
        metric = GroupedXAUC(50, limit_bytes=limit_bytes, folder=tmp_path)
        metric.update(preds[rank::3], target[rank::3], groups[rank::3])
        value = reduced(metric, collectives).compute()
        metric.close()
        return value

    assert on_ranks(3, evaluate) == pytest.approx([expected] * 3, abs=1e-12)


@pytest.mark.parametrize(
    ("preds", "reason"), [([], "no rows"), ([math.nan], "no rows"), ([1.0], "no group with two rows or more")]
)
def test_without_a_pair_it_is_undefined(preds, reason):
    metric = GroupedXAUC()
    metric.update(preds, np.zeros(len(preds)), np.zeros(len(preds), int))

    assert math.isnan(metric.compute())
    assert metric.undefined_because == reason


def test_nan_predictions_are_left_out_and_nan_labels_refused():
    metric = GroupedXAUC()
    metric.update([1, math.nan, 2], [1, 5, 2], ["a", "a", "a"])

    assert (metric.compute(), metric.num_left_out) == (1.0, 1)
    with pytest.raises(DataError, match="grouped_xauc: the label of row 1 is not a number"):
        metric.update([1, 2], [1, math.nan], [1, 1])
    with pytest.raises(DataError, match="max_pairs_per_group is 0; it must be at least 1"):
        GroupedXAUC(0)


def test_the_run_file_decides():
    section = GroupedXaucSection(grouping_key="user", max_pairs_per_group=7)

    assert GroupedXAUC.from_section(section).max_pairs_per_group == 7
