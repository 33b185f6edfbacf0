"""What every metric that adds up promises, whatever it measures."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.auc import AUC, DecayAUC, MulticlassAUC
from penstock.metrics.exact_auc import LEVEL, ExactAUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.metric import gathered, reduced
from penstock.metrics.row_means import (
    Accuracy,
    Calibration,
    HitRateAtK,
    LogLoss,
    MeanAbsoluteError,
    MeanSquaredError,
    NDCGAtK,
    NormalizedEntropy,
    RecallAtK,
    RootMeanSquaredError,
)
from penstock.metrics.xauc import XAUC, GroupedXAUC
from tests.metrics.ranks import on_ranks


def binary(generator, num_rows):
    return generator.integers(0, 9, num_rows) / 8, generator.integers(0, 2, num_rows)


def classes(generator, num_rows):
    weights = generator.integers(1, 4, (num_rows, 3))
    return weights / weights.sum(axis=1, keepdims=True), generator.integers(0, 3, num_rows)


def numbers(generator, num_rows):
    return generator.normal(size=num_rows).round(1), generator.normal(size=num_rows).round(1)


def candidates(generator, num_rows):
    return generator.integers(0, 5, (num_rows, 6)), generator.integers(0, 2, (num_rows, 6))


def grouped(of):
    """The same rows with a column of groups behind them."""

    def rows(generator, num_rows):
        return *of(generator, num_rows), generator.integers(0, 3, num_rows)

    return rows


EVERY_METRIC = {
    "auc": (AUC, binary),
    "auc of 20 thresholds": (lambda: AUC(20), binary),
    "decay_auc": (DecayAUC, binary),
    "log_loss": (LogLoss, binary),
    "normalized_entropy": (NormalizedEntropy, binary),
    "calibration": (Calibration, binary),
    "accuracy": (Accuracy, binary),
    "accuracy of classes": (lambda: Accuracy(top_k=2), classes),
    "multiclass_auc": (lambda: MulticlassAUC(average="weighted"), classes),
    "mean_absolute_error": (MeanAbsoluteError, numbers),
    "mean_squared_error": (MeanSquaredError, numbers),
    "root_mean_squared_error": (RootMeanSquaredError, numbers),
    "recall_at_k": (lambda: RecallAtK(2), candidates),
    "hit_rate_at_k": (lambda: HitRateAtK(2), candidates),
    "ndcg_at_k": (lambda: NDCGAtK(3), candidates),
    "exact auc": (ExactAUC, binary),
    "exact auc on disk": (lambda: ExactAUC(4 * LEVEL.itemsize), binary),
    "exact xauc": (lambda: XAUC(exact=True), numbers),
    "grouped_auc": (GroupedAUC, grouped(binary)),
    "grouped_auc on disk": (lambda: GroupedAUC(limit_bytes=100), grouped(binary)),
    "grouped_xauc": (lambda: GroupedXAUC(max_pairs_per_group=5), grouped(numbers)),
}

KEEPING_ROWS = (ExactAUC, XAUC, GroupedAUC, GroupedXAUC)
every_metric = pytest.mark.parametrize(("make", "rows"), EVERY_METRIC.values(), ids=EVERY_METRIC.keys())


def fed(make, *batches):
    metric = make()
    for batch in batches:
        metric.update(*batch)
    return metric


def same(left, right):
    """Equal counts; sums of fractions equal but for the order in which they were added."""
    assert left.compute() == pytest.approx(right.compute(), rel=1e-12, nan_ok=True)
    assert (left.undefined_because, left.num_left_out) == (right.undefined_because, right.num_left_out)
    if isinstance(left, KEEPING_ROWS):  # in any order
        return
    expected = right.state_dict()
    for name, array in left.state_dict().items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-12, atol=1e-12)


@every_metric
@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**32), num_rows=st.integers(0, 20), cuts=st.tuples(st.floats(0, 1), st.floats(0, 1))
)
def test_merging_the_parts_of_any_split_gives_the_whole(make, rows, seed, num_rows, cuts):
    preds, *others = rows(np.random.default_rng(seed), num_rows)
    preds = preds.astype(np.float64)
    if num_rows:
        preds[seed % num_rows] = np.nan
    first, second = sorted(int(cut * num_rows) for cut in cuts)
    parts = [
        fed(make, (preds[part], *(column[part] for column in others)))
        for part in (slice(0, first), slice(first, second), slice(second, None))
    ]

    merged = make()
    for part in parts:
        merged.merge(part)

    same(merged, fed(make, (preds, *others)))


@every_metric
def test_a_saved_metric_goes_on_and_its_state_does_not_follow_it(make, rows):
    generator = np.random.default_rng(0)
    first, second = rows(generator, 12), rows(generator, 12)
    before, after = fed(make, first), make()
    state = before.state_dict()
    kept = {name: array.copy() for name, array in state.items()}
    after.load_state_dict(state)
    for metric in (before, after):
        metric.update(*second)

    same(after, before)
    np.testing.assert_equal(state, kept)


@every_metric
def test_without_rows_it_is_undefined_with_a_reason(make, rows):
    generator = np.random.default_rng(0)
    empty, forgotten = fed(make, rows(generator, 0)), fed(make, rows(generator, 10))
    forgotten.reset()

    for metric in (make(), empty, forgotten):
        assert math.isnan(metric.compute())
        assert (metric.undefined_because, metric.num_left_out) == ("no rows", 0)


@every_metric
def test_rows_whose_prediction_is_nan_are_counted_and_left_out(make, rows):
    preds, *others = rows(np.random.default_rng(1), 30)
    with_nan = preds.astype(np.float64)
    with_nan[10:20] = np.nan
    kept = [*range(10), *range(20, 30)]

    metric = fed(make, (with_nan, *others))

    assert metric.num_left_out == 10
    expected = fed(make, (preds[kept], *(column[kept] for column in others)))
    assert metric.compute() == pytest.approx(expected.compute(), rel=1e-12)


@every_metric
@pytest.mark.parametrize("reduce", [reduced, gathered])
def test_three_ranks_one_of_them_without_rows_see_the_rows_of_all(make, rows, reduce):
    columns = rows(np.random.default_rng(3), 25)

    def evaluate(rank, collectives):
        part = slice(rank * 20, rank * 20 + 20)
        metric = fed(make, [column[part] for column in columns]) if rank < 2 else make()
        whole = reduce(metric, collectives)
        metric.update(*columns)  # what was reduced does not follow
        return whole

    for whole in on_ranks(3, evaluate):
        same(whole, fed(make, columns))


@every_metric
def test_foreign_states_and_other_lengths_are_refused(make, rows):
    metric = make()
    with pytest.raises(CheckpointError, match="the saved state has"):
        metric.load_state_dict({"foreign": np.zeros(3)})
    preds, target, *groups = rows(np.random.default_rng(0), 4)
    with pytest.raises(DataError, match="4 predictions for 3 labels"):
        metric.update(preds, target[:3], *groups)
