"""Accuracy, LogLoss, NormalizedEntropy and Calibration against scikit-learn and their definitions."""

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, top_k_accuracy_score

from penstock.config.errors import DataError
from penstock.metrics.binary import Accuracy, Calibration, LogLoss, NormalizedEntropy


def fed(make, preds, target, **settings):
    metric = make(**settings)
    metric.update(preds, target)
    return metric


def accuracy_of(preds, target, **settings):
    return fed(Accuracy, preds, target, **settings).compute()


@pytest.mark.parametrize("threshold", [0.3, 0.5])
@pytest.mark.parametrize("shape", [(500,), (500, 1)])
def test_one_probability_is_held_against_the_threshold(threshold, shape):
    generator = np.random.default_rng(0)
    preds, target = generator.random(shape), generator.random(500) < 0.4

    expected = accuracy_score(target, preds.ravel() >= threshold)
    assert accuracy_of(preds, target, threshold=threshold) == pytest.approx(expected)


def test_a_prediction_that_equals_the_threshold_reaches_it():
    assert accuracy_of(np.array([0.7], dtype=np.float32), [1], threshold=0.7) == 1.0


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_the_class_is_among_the_likeliest(top_k):
    generator = np.random.default_rng(1)
    preds, target = generator.dirichlet(np.ones(5), 500), generator.integers(0, 5, 500)

    expected = top_k_accuracy_score(target, preds, k=top_k, labels=range(5))
    assert accuracy_of(preds, target, top_k=top_k) == pytest.approx(expected)


def test_equal_probabilities_are_ordered_by_class_as_argmax_does():
    preds = np.array([[0.4, 0.4, 0.2]] * 3)

    assert accuracy_of(preds, [0, 1, 2]) == pytest.approx(1 / 3)
    assert accuracy_of(preds, [0, 1, 2], top_k=2) == pytest.approx(2 / 3)


@pytest.mark.parametrize("label", [3, -1, 0.5])
def test_a_label_that_is_no_class_is_refused(label):
    with pytest.raises(DataError, match=rf"accuracy: the label {label} is no class from 0 to 2"):
        accuracy_of(np.full((1, 3), 1 / 3), np.array([label]))


def test_logits_are_refused():
    with pytest.raises(DataError, match=r"accuracy: predictions run from -1 to 2, .*these look like logits"):
        accuracy_of(np.array([[-1.0, 2.0]]), [0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_equals_scikit_learn_also_when_a_row_is_surely_wrong(dtype):
    generator = np.random.default_rng(0)
    preds = generator.random(1000).astype(dtype)
    target = generator.random(1000) < preds
    preds[:4], target[:4] = [0, 1, 0, 1], [0, 1, 1, 0]
    assert fed(LogLoss, preds, target).compute() == pytest.approx(log_loss(target, preds), rel=1e-6)


def test_one_class_is_no_problem():
    assert fed(LogLoss, [0.5, 0.5], [1, 1]).compute() == pytest.approx(math.log(2))


@pytest.mark.parametrize("base_rate", [0.5, 0.1])
def test_it_is_the_log_loss_over_that_of_the_base_rate(base_rate):
    generator = np.random.default_rng(0)
    preds = generator.beta(1, 1 / base_rate, 2000)
    target = generator.random(2000) < preds

    expected = log_loss(target, preds) / log_loss(target, np.full(2000, target.mean()))
    assert fed(NormalizedEntropy, preds, target).compute() == pytest.approx(expected, rel=1e-12)


def test_the_base_rate_itself_gives_one():
    assert fed(NormalizedEntropy, [0.25] * 4, [1, 0, 0, 0]).compute() == pytest.approx(1.0)


def test_eta_limits_what_a_surely_wrong_row_costs():
    value = fed(NormalizedEntropy, [1.0, 1.0], [0, 1], eta=1e-3).compute()

    assert value == pytest.approx(-(math.log(1e-3) + math.log(1 - 1e-3)) / 2 / math.log(2))


@pytest.mark.parametrize(("target", "reason"), [([0, 0], "no positive rows"), ([1, 1], "no negative rows")])
def test_entropy_of_one_class_is_undefined(target, reason):
    metric = fed(NormalizedEntropy, [0.5, 0.5], target)

    assert (math.isnan(metric.compute()), metric.undefined_because) == (True, reason)


def test_it_is_the_sum_of_predictions_over_the_positives():
    assert fed(Calibration, [0.5, 0.75, 0.25], [1, 0, 0]).compute() == 1.5


def test_without_positives_it_is_undefined():
    metric = fed(Calibration, [0.5], [0])

    assert (math.isnan(metric.compute()), metric.undefined_because) == (True, "no positive rows")


def test_predictions_of_several_classes_are_refused():
    with pytest.raises(
        DataError, match="calibration: predictions of 2 classes; give it the probability of one"
    ):
        fed(Calibration, [[0.5, 0.5]], [0])
