"""Calibration: predicted over observed."""

import math

import pytest

from penstock.config.errors import DataError
from penstock.metrics.calibration import Calibration


def fed(preds, target):
    metric = Calibration()
    metric.update(preds, target)
    return metric


def test_it_is_the_sum_of_predictions_over_the_positives():
    assert fed([0.5, 0.75, 0.25], [1, 0, 0]).compute() == 1.5


def test_without_positives_it_is_undefined():
    metric = fed([0.5], [0])

    assert (math.isnan(metric.compute()), metric.undefined_because) == (True, "no positive rows")


def test_predictions_of_several_classes_are_refused():
    with pytest.raises(
        DataError, match="calibration: predictions of 2 classes; give it the probability of one"
    ):
        fed([[0.5, 0.5]], [0])
