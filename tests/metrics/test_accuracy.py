"""Accuracy against scikit-learn and against its definition."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, top_k_accuracy_score

from penstock.config.errors import DataError
from penstock.metrics.accuracy import Accuracy


def accuracy_of(preds, target, **settings):
    metric = Accuracy(**settings)
    metric.update(preds, target)
    return metric.compute()


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
