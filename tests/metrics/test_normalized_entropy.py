"""NormalizedEntropy against its definition by scikit-learn's log loss."""

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss

from penstock.metrics.normalized_entropy import NormalizedEntropy


def fed(preds, target, eta=1e-12):
    metric = NormalizedEntropy(eta)
    metric.update(preds, target)
    return metric


@pytest.mark.parametrize("base_rate", [0.5, 0.1])
def test_it_is_the_log_loss_over_that_of_the_base_rate(base_rate):
    generator = np.random.default_rng(0)
    preds = generator.beta(1, 1 / base_rate, 2000)
    target = generator.random(2000) < preds

    expected = log_loss(target, preds) / log_loss(target, np.full(2000, target.mean()))
    assert fed(preds, target).compute() == pytest.approx(expected, rel=1e-12)


def test_the_base_rate_itself_gives_one():
    assert fed([0.25] * 4, [1, 0, 0, 0]).compute() == pytest.approx(1.0)


def test_eta_limits_what_a_surely_wrong_row_costs():
    value = fed([1.0, 1.0], [0, 1], eta=1e-3).compute()

    assert value == pytest.approx(-(math.log(1e-3) + math.log(1 - 1e-3)) / 2 / math.log(2))


@pytest.mark.parametrize(("target", "reason"), [([0, 0], "no positive rows"), ([1, 1], "no negative rows")])
def test_with_one_class_it_is_undefined(target, reason):
    metric = fed([0.5, 0.5], target)

    assert (math.isnan(metric.compute()), metric.undefined_because) == (True, reason)
