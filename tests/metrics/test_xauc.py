"""XAUC against its definition: every pair looked at."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from penstock.config.errors import BudgetExceeded, CheckpointError, DataError
from penstock.metrics.reducing import reduced
from penstock.metrics.xauc import XAUC
from penstock.tensors.sections.metrics import XAUC as XaucSection
from tests.metrics.ranks import on_ranks

PREDS = np.arange(1, 9) / 10
TARGET = np.array([0.2, 0.3, 0.5, 0.4, 0.3, 0.2, 0.8, 0.9])

few_values = st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 0.5000001, 2.0, math.inf])
rows_with_ties = st.lists(st.tuples(few_values, st.integers(0, 4)), max_size=40)


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
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=np.float32)


@pytest.mark.parametrize("options", [{}, {"in_batch": True}, {"exact": True}, {"max_pairs": 28}])
def test_the_example_has_19_of_28_pairs_in_the_right_order(options):
    assert xauc_of(PREDS, TARGET, **options) == 19 / 28


@settings(max_examples=100)
@given(rows_with_ties)
def test_counting_equals_looking_at_every_pair(rows):
    preds, target = columns(rows)

    assert xauc_of(preds, target, exact=True) == pytest.approx(
        by_definition(preds, target), abs=1e-15, nan_ok=True
    )


def test_many_rows_without_ties_are_counted_exactly():
    generator = np.random.default_rng(0)
    preds = generator.random(1500)
    target = preds + generator.random(1500)
    rising = (preds[:, None] < preds) & (target[:, None] < target)

    assert xauc_of(preds, target, in_batch=True) == rising.sum() / (1500 * 1499 / 2)


def test_ties_on_either_side_count_as_wrong():
    assert xauc_of([0.1, 0.1], [1, 2]) == 0.0
    assert xauc_of([0.1, 0.2], [1, 1]) == 0.0
    assert xauc_of([0.1, 0.2], [1, 2]) == 1.0


@pytest.mark.parametrize(("pair_weight", "expected"), [(True, (1 + 0) / (1 + 3)), (False, (1 + 0) / 2)])
def test_batches_count_by_their_pairs_or_alike(pair_weight, expected):
    metric = XAUC(in_batch=True, pair_weight=pair_weight)
    metric.update([1, 2], [1, 2])
    metric.update([1, 2, 3], [3, 2, 1])
    metric.update([5], [5])

    assert metric.compute() == expected


def test_drawn_pairs_come_close_and_repeat_with_the_seed():
    generator = np.random.default_rng(0)
    target = generator.random(2000)
    preds = target + generator.normal(0, 0.5, 2000)
    exact = xauc_of(preds, target, exact=True)

    drawn = [xauc_of(preds, target, sample_ratio=0.01, seed=seed) for seed in (0, 0, 1)]

    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn == pytest.approx([exact] * 3, abs=0.02)


def test_max_pairs_overrides_the_ratio():
    metric = XAUC(sample_ratio=1.0, max_pairs=3)
    metric.update(PREDS, TARGET)

    assert metric.compute() in [right / 3 for right in range(4)]


def test_more_rows_than_are_kept_leave_a_uniform_sample():
    generator = np.random.default_rng(3)
    target = generator.random(20_000)
    preds = target + generator.normal(0, 0.5, 20_000)
    metric = XAUC(max_rows=2000)
    for start in range(0, 20_000, 700):
        metric.update(preds[start : start + 700], target[start : start + 700])
    kept = metric.state_dict()

    assert metric.compute() == pytest.approx(xauc_of(preds, target, exact=True), abs=0.02)
    assert len(kept["preds"]) == 2000
    assert np.mean(np.isin(preds[:10_000], kept["preds"])) == pytest.approx(0.1, abs=0.01)


def test_a_sample_does_not_depend_on_the_cut_into_batches():
    preds = np.random.default_rng(4).random(5000)
    whole, pieces = XAUC(max_rows=300), XAUC(max_rows=300)
    whole.update(preds, preds)
    for piece in np.array_split(preds, 60):
        pieces.update(piece, piece)

    np.testing.assert_equal(pieces.state_dict(), whole.state_dict())


def test_ranks_that_saw_rows_at_the_same_places_draw_different_lots():
    generator = np.random.default_rng(5)
    left, right = XAUC(max_rows=100), XAUC(max_rows=100)
    left.update(generator.random(1000), np.zeros(1000))
    right.update(1 + generator.random(1000), np.zeros(1000))
    left.merge(right)
    kept = left.state_dict()

    assert len(kept["preds"]) == 100
    assert len(np.unique(kept["lots"])) == 100
    assert np.mean(kept["preds"] > 1) == pytest.approx(0.5, abs=0.2)


def test_exact_refuses_more_rows_than_it_may_hold():
    metric = XAUC(exact=True, max_rows=10)
    metric.update(np.arange(10), np.arange(10))

    with pytest.raises(
        BudgetExceeded, match="xauc: exact holds at most 10 rows and there are more; leave exact out"
    ):
        metric.update([1], [1])


@pytest.mark.parametrize(
    ("preds", "options", "reason"),
    [
        ([], {}, "no rows"),
        ([1.0], {}, "one row only"),
        ([math.nan, 1.0], {}, "one row only"),
        ([1.0], {"in_batch": True}, "no batch with two rows"),
    ],
)
def test_without_a_pair_it_is_undefined(preds, options, reason):
    metric = XAUC(**options)
    metric.update(preds, np.zeros(len(preds)))

    assert math.isnan(metric.compute())
    assert metric.undefined_because == reason


@pytest.mark.parametrize("options", [{}, {"in_batch": True}])
def test_nan_predictions_are_counted_and_left_out(options):
    metric = XAUC(**options)
    metric.update([0.1, math.nan, 0.3], [1, 0, 2])

    assert (metric.compute(), metric.num_left_out) == (1.0, 1)


def test_bad_rows_are_refused():
    with pytest.raises(DataError, match="xauc: 2 predictions for 1 labels"):
        XAUC().update([1, 2], [1])
    with pytest.raises(DataError, match="xauc: the label of row 1 is not a number"):
        XAUC().update([1, 2], [1, math.nan])
    with pytest.raises(DataError, match="in_batch and exact exclude each other"):
        XAUC(in_batch=True, exact=True)
    with pytest.raises(DataError, match="cannot be merged"):
        XAUC(in_batch=True).merge(XAUC())


def test_torch_tensors_are_read():
    preds = torch.tensor(PREDS, dtype=torch.float32, requires_grad=True)

    assert xauc_of(preds, torch.tensor(TARGET), exact=True) == 19 / 28


@settings(max_examples=50)
@given(rows_with_ties, st.integers(0, 40))
def test_merging_the_parts_of_any_split_gives_the_whole(rows, cut):
    preds, target = columns(rows)
    whole, left, right = XAUC(exact=True), XAUC(exact=True), XAUC(exact=True)
    whole.update(preds, target)
    left.update(preds[:cut], target[:cut])
    right.update(preds[cut:], target[cut:])

    left.merge(right)

    np.testing.assert_equal(left.compute(), whole.compute())


@pytest.mark.parametrize("options", [{"in_batch": True}, {"exact": True}])
def test_ranks_with_other_numbers_of_rows_and_none_agree_with_one(options):
    batches = [(PREDS, TARGET), (PREDS[::-1][:5], TARGET[:5])]
    one = XAUC(**options)
    for batch in batches:
        one.update(*batch)

    def evaluate(rank, collectives):
        metric = XAUC(**options)
        for batch in batches[rank : rank + 1]:
            metric.update(*batch)
        return reduced(metric, collectives).compute()

    assert on_ranks(3, evaluate) == [one.compute()] * 3


@pytest.mark.parametrize("options", [{"in_batch": True}, {"exact": True}, {"max_rows": 5}])
def test_a_saved_metric_goes_on_where_it_was(options):
    before, after = XAUC(**options), XAUC(**options)
    before.update(PREDS, TARGET)
    after.load_state_dict(before.state_dict())
    for metric in (before, after):
        metric.update([0.4, 0.2, math.nan], [0, 1, 2])

    np.testing.assert_equal(after.state_dict(), before.state_dict())
    assert after.compute() == before.compute()


def test_a_torn_state_is_refused():
    state = XAUC().state_dict()
    with pytest.raises(CheckpointError, match="differ in length"):
        XAUC().load_state_dict({**state, "preds": np.zeros(3)})
    del state["lots"]
    with pytest.raises(CheckpointError, match="xauc: the saved state has"):
        XAUC().load_state_dict(state)


def test_reset_forgets():
    metric = XAUC()
    metric.update([0.2, math.nan, 0.8], [1, 0, 0])
    metric.reset()

    assert (metric.undefined_because, metric.num_left_out) == ("no rows", 0)


def test_the_run_file_decides():
    metric = XAUC.from_section(XaucSection(in_batch=True, sample_ratio=0.5, max_pairs=7, pair_weight=False))

    assert (metric.in_batch, metric.sample_ratio, metric.max_pairs) == (True, 0.5, 7)
    assert (metric.exact, metric.pair_weight) == (False, False)


def test_a_run_file_cannot_ask_for_batches_and_for_the_whole_set():
    with pytest.raises(
        ValidationError, match="in_batch and exact exclude each other; leave out one of the two"
    ):
        XaucSection.model_validate({"in_batch": True, "exact": True})
