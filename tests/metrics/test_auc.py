"""AUC against scikit-learn and against its definition."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.auc import AUC


def auc_of(preds, target, thresholds=None):
    metric = AUC(thresholds)
    metric.update(preds, target)
    return metric.compute()


def test_the_example_of_ten_thresholds():
    preds = np.arange(1, 9, dtype=np.float32) / 10
    target = np.array([1, 0, 1, 0, 0, 0, 1, 1])

    assert auc_of(preds, target, thresholds=10) == pytest.approx(0.5625, abs=1e-12)


@pytest.mark.parametrize("base_rate", [0.2, 0.01])
def test_the_histogram_is_within_a_ten_thousandth_of_the_exact_area(base_rate):
    generator = np.random.default_rng(0)
    preds = generator.beta(1, 1 / base_rate, 200_000)
    target = generator.random(200_000) < preds

    assert auc_of(preds, target) == pytest.approx(roc_auc_score(target, preds), abs=1e-4)


def test_ties_count_half_exactly_as_in_scikit_learn():
    generator = np.random.default_rng(1)
    preds = generator.integers(0, 5, 1000) / 4
    target = generator.random(1000) < 0.3 + 0.4 * preds

    assert auc_of(preds, target) == pytest.approx(roc_auc_score(target, preds), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("thresholds", [2, 11, 200])
def test_given_thresholds_are_exactly_those(dtype, thresholds):
    generator = np.random.default_rng(2)
    preds = np.concatenate([generator.random(500), np.linspace(0, 1, thresholds)]).astype(dtype)
    target = generator.random(len(preds)) < 0.4

    assert auc_of(preds, target, thresholds) == pytest.approx(trapezoid(preds, target, thresholds), abs=1e-12)


def trapezoid(preds, target, thresholds):
    """The area by comparing every prediction with every threshold."""
    reached = preds[:, None] >= np.linspace(0, 1, thresholds).astype(preds.dtype)
    true_rate = [*reached[target].mean(axis=0), 0.0]
    false_rate = [*reached[~target].mean(axis=0), 0.0]
    return -np.trapezoid(true_rate, false_rate)


def test_rows_of_full_confidence_are_ties_too():
    assert auc_of(np.ones(4), [1, 0, 1, 0], thresholds=10) == 0.5


@pytest.mark.parametrize(
    ("target", "reason"), [([], "no rows"), ([0, 0], "no positive rows"), ([1, 1], "no negative rows")]
)
def test_without_both_classes_it_is_undefined_with_a_reason(target, reason):
    metric = AUC()
    metric.update(np.full(len(target), 0.5), target)

    assert math.isnan(metric.compute())
    assert metric.undefined_because == reason


def test_nan_predictions_are_counted_and_left_out():
    metric = AUC()
    metric.update(np.array([0.1, np.nan, 0.9, np.nan]), np.array([0, 0, 1, 1]))

    assert (metric.compute(), metric.num_left_out) == (1.0, 2)


def test_logits_are_refused():
    with pytest.raises(
        DataError, match=r"auc: predictions run from -2 to 3.5, outside \[0, 1\]: these look like logits"
    ):
        auc_of(np.array([-2.0, 3.5]), [0, 1])
    with pytest.raises(DataError, match="outside"):
        auc_of(np.array([0.5, np.inf]), [0, 1])


def test_labels_other_than_0_and_1_are_refused():
    with pytest.raises(DataError, match="auc: the label 3 is neither 0 nor 1"):
        auc_of(np.array([0.1, 0.2]), np.array([0, 3]))


def test_lengths_must_agree():
    with pytest.raises(DataError, match="auc: 2 predictions for 3 labels"):
        auc_of(np.array([0.1, 0.2]), np.array([0, 1, 1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_torch_tensors_are_read_even_with_gradients(dtype):
    preds = torch.tensor([0.25, 0.75, 0.5], dtype=dtype, requires_grad=True)

    assert auc_of(preds, torch.tensor([0, 1, 1])) == 1.0


@settings(max_examples=25)
@given(st.data())
def test_merging_the_parts_of_any_split_gives_the_whole(data):
    rows = data.draw(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40))
    cut = data.draw(st.integers(0, len(rows)))
    preds, target = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=bool)
    whole, left, right = AUC(50), AUC(50), AUC(50)
    whole.update(preds, target)
    left.update(preds[:cut], target[:cut])
    right.update(preds[cut:], target[cut:])

    left.merge(right)

    np.testing.assert_equal(left.state_dict(), whole.state_dict())


def test_a_saved_metric_goes_on_where_it_was():
    before, after = AUC(20), AUC(20)
    before.update([0.1, 0.6], [0, 1])
    after.load_state_dict(before.state_dict())
    for metric in (before, after):
        metric.update([0.4, 0.2], [0, 1])

    assert after.compute() == before.compute() == 0.75


def test_a_state_of_other_thresholds_is_refused():
    with pytest.raises(CheckpointError, match=r"auc: the saved counts has shape \(2, 10\), not \(2, 20\)"):
        AUC(20).load_state_dict(AUC(10).state_dict())
    with pytest.raises(DataError, match=r"counts of shape \(2, 10\) cannot be merged with shape \(2, 20\)"):
        AUC(20).merge(AUC(10))


def test_reset_forgets():
    metric = AUC()
    metric.update([0.2, np.nan, 0.8], [1, 0, 0])
    metric.reset()

    assert (metric.undefined_because, metric.num_left_out) == ("no rows", 0)
