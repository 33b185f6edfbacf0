"""Errors of predicted numbers against scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, root_mean_squared_error

from penstock.config.errors import DataError
from penstock.metrics.regression import MeanAbsoluteError, MeanSquaredError, RootMeanSquaredError

EVERY_ERROR = [
    (MeanAbsoluteError, mean_absolute_error),
    (MeanSquaredError, mean_squared_error),
    (RootMeanSquaredError, root_mean_squared_error),
]


@pytest.mark.parametrize(("make", "reference"), EVERY_ERROR)
@pytest.mark.parametrize("num_rows", [1, 1000])
def test_they_equal_scikit_learn(make, reference, num_rows):
    generator = np.random.default_rng(0)
    preds, target = generator.normal(size=(2, num_rows))
    metric = make()
    metric.update(preds, target)

    assert metric.compute() == pytest.approx(reference(target, preds), rel=1e-12)


@pytest.mark.parametrize(("make", "reference"), EVERY_ERROR)
def test_an_infinite_prediction_is_infinitely_wrong(make, reference):
    metric = make()
    metric.update([1.0, -np.inf], [1.0, 2.0])

    assert metric.compute() == math.inf


def test_sums_of_half_precision_are_exact():
    metric = MeanAbsoluteError()
    metric.update(np.full(10_000, 0.5, dtype=np.float16), np.zeros(10_000))

    assert metric.compute() == 0.5


def test_a_label_that_is_no_number_is_refused():
    with pytest.raises(DataError, match="mean_squared_error: the label of row 1 of the batch is NaN"):
        MeanSquaredError().update([1.0, 2.0], [1.0, np.nan])
