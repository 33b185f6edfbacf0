"""LogLoss against scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss

from penstock.config.errors import DataError
from penstock.metrics.log_loss import LogLoss


def rows(num_rows, dtype=np.float64, seed=0):
    generator = np.random.default_rng(seed)
    preds = generator.random(num_rows).astype(dtype)
    return preds, generator.random(num_rows) < preds


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_equals_scikit_learn_also_when_a_row_is_surely_wrong(dtype):
    preds, target = rows(1000, dtype)
    preds[:4], target[:4] = [0, 1, 0, 1], [0, 1, 1, 0]
    metric = LogLoss()
    metric.update(preds, target)

    assert metric.compute() == pytest.approx(log_loss(target, preds), rel=1e-6)


def test_batches_halves_and_the_whole_agree():
    preds, target = rows(100)
    whole, left, right = LogLoss(), LogLoss(), LogLoss()
    whole.update(preds, target)
    left.update(preds[:30], target[:30])
    right.update(preds[30:60], target[30:60])
    right.update(preds[60:], target[60:])

    left.merge(right)

    assert left.compute() == pytest.approx(whole.compute(), rel=1e-14)


def test_without_rows_it_is_undefined():
    metric = LogLoss()
    metric.update(np.array([]), np.array([]))

    assert math.isnan(metric.compute())
    assert metric.undefined_because == "no rows"


def test_one_class_is_no_problem():
    metric = LogLoss()
    metric.update([0.5, 0.5], [1, 1])

    assert metric.compute() == pytest.approx(math.log(2))


def test_nan_predictions_are_left_out_and_logits_refused():
    metric = LogLoss()
    metric.update(np.array([0.5, np.nan]), np.array([1, 1]))

    assert (metric.compute(), metric.num_left_out) == (pytest.approx(math.log(2)), 1)
    with pytest.raises(DataError, match=r"log_loss: predictions run from 7 to 7, .*these look like logits"):
        metric.update([7.0], [1])


def test_saved_and_reset():
    before, after = LogLoss(), LogLoss()
    before.update(*rows(10))
    after.load_state_dict(before.state_dict())

    assert after.compute() == before.compute()
    after.reset()
    assert math.isnan(after.compute())
    assert not math.isnan(before.compute())
