"""Values of metrics against scikit-learn and their definitions."""

import math

import numpy as np
import pytest
import sklearn.metrics as reference
import torch
from sklearn.metrics import log_loss, roc_auc_score

from penstock.metrics import auc
from penstock.metrics.auc import AUC, DecayAUC, MulticlassAUC
from penstock.metrics.exact_auc import LEVEL, ExactAUC
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

PREDS, TARGET = np.arange(1, 9) / 10, np.array([1, 0, 1, 0, 0, 0, 1, 1])


def value_of(metric, preds, target):
    metric.update(preds, target)
    return metric.compute()


def clicks(num_rows, base_rate=0.3, seed=0):
    generator = np.random.default_rng(seed)
    preds = generator.beta(1, 1 / base_rate, num_rows)
    return preds, generator.random(num_rows) < preds


@pytest.mark.parametrize("make", [AUC, DecayAUC, ExactAUC, NormalizedEntropy, Calibration])
def test_without_both_classes_it_is_undefined_with_a_reason(make):
    for target, reason in (([0, 0], "no positive rows"), ([1, 1], "no negative rows")):
        metric = make()
        if make is not Calibration or 1 not in target:
            assert math.isnan(value_of(metric, np.full(2, 0.5), target))
            assert metric.undefined_because == reason


@pytest.mark.parametrize("base_rate", [0.2, 0.01])
def test_the_histogram_is_within_a_ten_thousandth_of_the_exact_area(base_rate):
    preds, target = clicks(200_000, base_rate)

    assert value_of(AUC(), preds, target) == pytest.approx(roc_auc_score(target, preds), abs=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("thresholds", [2, 11, 200])
def test_given_thresholds_are_exactly_those(dtype, thresholds):
    generator = np.random.default_rng(2)
    preds = np.concatenate([generator.random(500), np.linspace(0, 1, thresholds)]).astype(dtype)
    target = generator.random(len(preds)) < 0.4
    reached = preds[:, None] >= np.linspace(0, 1, thresholds).astype(dtype)
    true_rate, false_rate = ([*reached[rows].mean(axis=0), 0.0] for rows in (target, ~target))

    expected = -np.trapezoid(true_rate, false_rate)
    assert value_of(AUC(thresholds), preds, target) == pytest.approx(expected, abs=1e-12)


def test_ties_count_half():
    preds, target = np.random.default_rng(1).integers(0, 5, 1000) / 4, clicks(1000)[1]

    assert value_of(AUC(), preds, target) == pytest.approx(roc_auc_score(target, preds), abs=1e-12)
    assert value_of(AUC(10), np.ones(4), [1, 0, 1, 0]) == 0.5
    assert value_of(AUC(10), PREDS.astype(np.float32), TARGET) == pytest.approx(0.5625, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_torch_tensors_are_read_even_with_gradients(dtype):
    preds = torch.tensor([0.25, 0.75, 0.5], dtype=dtype, requires_grad=True)

    assert value_of(AUC(), preds, torch.tensor([0, 1, 1])) == 1.0


@pytest.mark.parametrize("num_distinct", [None, 50, 1000])
def test_an_exact_area_is_exact_however_much_is_on_disk(num_distinct, tmp_path):
    limit_bytes = 100 * LEVEL.itemsize
    preds, target = clicks(1500)
    if num_distinct is not None:
        preds = np.random.default_rng(1).integers(0, num_distinct, 1500) / 1e4
    metric = ExactAUC(limit_bytes, tmp_path)
    for start in range(0, 1500, 64):
        metric.update(preds[start : start + 64], target[start : start + 64])
        assert metric.held_bytes <= limit_bytes

    assert metric.compute() == pytest.approx(roc_auc_score(target, preds), rel=1e-12)
    assert (metric.num_runs > 0) == (num_distinct != 50)
    assert len(list(tmp_path.rglob("run-*"))) == metric.num_runs
    metric.reset()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_that_differ_in_the_last_bit_are_no_ties(dtype):
    low = dtype(0.01)

    assert value_of(ExactAUC(), np.array([low, np.nextafter(low, dtype(1))], dtype), [0, 1]) == 1.0


def test_a_decay_mixes_the_rows_since_the_last_one_into_the_counts():
    metric, plain = DecayAUC(), AUC(200)
    for found in (metric, plain):
        found.update(PREDS, TARGET)
    assert metric.compute() == plain.compute()  # before the first decay: all rows so far

    metric = DecayAUC()
    metric.update([0.2, 0.9], [0, 1])
    metric.decay(0.75)
    metric.update([0.2, 0.9], [1, 0])
    assert metric.compute() == 1.0
    metric.decay(0.75)
    # Positives: 3/4 above and 1/4 below; negatives the other way round. Ties count half.
    assert metric.compute() == pytest.approx(0.75 * 0.75 + 2 * 0.75 * 0.25 / 2)


def class_rows(num_rows, num_classes):
    generator = np.random.default_rng(0)
    target = generator.integers(0, num_classes, num_rows)
    weights = np.exp(generator.normal(size=(num_rows, num_classes)) + np.eye(num_classes)[target])
    return weights / weights.sum(axis=1, keepdims=True), target


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_each_class_against_the_rest_equals_scikit_learn(average):
    preds, target = class_rows(5000, 4)

    expected = roc_auc_score(target, preds, multi_class="ovr", average=average)
    assert value_of(MulticlassAUC(average=average), preds, target) == pytest.approx(expected, abs=1e-4)

    present = target < 2  # a class without rows is left out of the mean
    areas = [roc_auc_score(target[present] == own, preds[present, own]) for own in (0, 1)]
    weights = np.bincount(target[present]) if average == "weighted" else None
    found = value_of(MulticlassAUC(average=average), preds[present], target[present])
    assert found == pytest.approx(np.average(areas, weights=weights), abs=1e-4)
    one_class = MulticlassAUC(average=average)
    assert math.isnan(value_of(one_class, preds[target == 1], target[target == 1]))
    assert one_class.undefined_because == "rows of one class only"


def test_many_classes_share_the_memory(monkeypatch):
    monkeypatch.setattr(auc, "MAX_CELLS", 1000)
    metric = MulticlassAUC()
    metric.update(*class_rows(10, 20))

    assert metric.state_dict()["counts"].shape == (20, 2, 50)


@pytest.mark.parametrize("shape", [(500,), (500, 1)])
def test_one_probability_is_compared_with_the_threshold(shape):
    preds, target = clicks(500)

    expected = reference.accuracy_score(target, preds >= 0.3)
    assert value_of(Accuracy(0.3), preds.reshape(shape), target) == pytest.approx(expected)
    assert value_of(Accuracy(0.7), np.array([0.7], dtype=np.float32), [1]) == 1.0


@pytest.mark.parametrize("top_k", [1, 3])
def test_the_class_is_among_the_likeliest(top_k):
    preds, target = class_rows(500, 5)

    expected = reference.top_k_accuracy_score(target, preds, k=top_k, labels=range(5))
    assert value_of(Accuracy(top_k=top_k), preds, target) == pytest.approx(expected)


def test_equal_probabilities_are_ordered_by_class_as_argmax_does():
    preds = np.array([[0.4, 0.4, 0.2]] * 3)

    assert value_of(Accuracy(), preds, [0, 1, 2]) == pytest.approx(1 / 3)
    assert value_of(Accuracy(top_k=2), preds, [0, 1, 2]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_log_loss_equals_scikit_learn_also_when_a_row_is_surely_wrong(dtype):
    preds, target = clicks(1000)
    preds = preds.astype(dtype)
    preds[:4], target[:4] = [0, 1, 0, 1], [0, 1, 1, 0]

    assert value_of(LogLoss(), preds, target) == pytest.approx(log_loss(target, preds), rel=1e-6)
    assert value_of(LogLoss(), [0.5, 0.5], [1, 1]) == pytest.approx(math.log(2))


def test_a_normalized_entropy_is_the_log_loss_over_that_of_the_base_rate():
    preds, target = clicks(2000)

    expected = log_loss(target, preds) / log_loss(target, np.full(2000, target.mean()))
    assert value_of(NormalizedEntropy(), preds, target) == pytest.approx(expected, rel=1e-12)
    assert value_of(NormalizedEntropy(eta=1e-3), [1.0, 1.0], [0, 1]) == pytest.approx(
        -(math.log(1e-3) + math.log(1 - 1e-3)) / 2 / math.log(2)
    )


def test_calibration_is_the_sum_of_predictions_over_the_positives():
    assert value_of(Calibration(), [0.5, 0.75, 0.25], [1, 0, 0]) == 1.5


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (MeanAbsoluteError, reference.mean_absolute_error),
        (MeanSquaredError, reference.mean_squared_error),
        (RootMeanSquaredError, reference.root_mean_squared_error),
    ],
)
def test_errors_equal_scikit_learn(make, expected):
    preds, target = np.random.default_rng(0).normal(size=(2, 1000))

    assert value_of(make(), preds, target) == pytest.approx(expected(target, preds), rel=1e-12)
    assert value_of(make(), [1.0, -np.inf], [1.0, 2.0]) == math.inf
    assert value_of(make(), np.ones(10_000, dtype=np.float16), np.zeros(10_000)) == 1.0


def test_the_right_candidate_is_the_first_where_the_target_marks_none():
    similarities = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [0.5, 0.9, 0.1]])
    assert value_of(RecallAtK(1), similarities, np.ones(3)) == pytest.approx(1 / 3)
    assert value_of(HitRateAtK(2), similarities, np.ones(3)) == pytest.approx(2 / 3)
    assert value_of(NDCGAtK(3), similarities, np.ones(3)) == pytest.approx((1 + 1 / 2 + 1 / math.log2(3)) / 3)


@pytest.mark.parametrize("top_k", [1, 3, 20])
def test_recall_hits_and_ndcg_equal_their_definitions(top_k):
    generator = np.random.default_rng(0)
    similarities, target = generator.normal(size=(200, 8)), generator.random((200, 8)) < 0.3
    counted = target.any(axis=1)
    best = np.argsort(-similarities, axis=1)[:, :top_k]
    found = np.take_along_axis(target, best, axis=1).sum(axis=1)[counted]

    recalls = found / target.sum(axis=1)[counted]
    gains = reference.ndcg_score(target[counted], similarities[counted], k=top_k)
    for make, expected in (
        (RecallAtK, recalls.mean()),
        (HitRateAtK, (found > 0).mean()),
        (NDCGAtK, gains),
    ):
        assert value_of(make(top_k), similarities, target) == pytest.approx(expected)


@pytest.mark.parametrize("make", [RecallAtK, HitRateAtK, NDCGAtK])
def test_equal_infinite_and_missing_candidates(make):
    """A model that finds everything equal finds nothing; infinities rank; rows without a right one say nothing."""
    assert value_of(make(2), np.full((4, 3), 0.5), np.ones(4)) == 0.0
    assert value_of(make(1), np.array([[np.inf, 0.0, -np.inf], [-np.inf, 0.0, 1.0]]), np.ones(2)) == 0.5
    metric = make(1)
    metric.update(np.array([[0.9, 0.1]]), np.array([[0, 0]]))
    assert metric.undefined_because == "no rows"
    assert value_of(metric, np.array([[0.9, 0.1]]), np.array([[1, 0]])) == 1.0
