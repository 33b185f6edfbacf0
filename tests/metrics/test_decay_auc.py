"""DecayAUC: counts that fade."""

import math

import numpy as np
import pytest

from penstock.metrics.auc import AUC
from penstock.metrics.decay_auc import DecayAUC

PREDS = np.arange(1, 9) / 10
TARGET = np.array([1, 0, 1, 0, 0, 0, 1, 1])


def test_the_example_of_ten_thresholds():
    metric = DecayAUC(thresholds=10)
    values = []
    for _ in range(2):
        metric.update(PREDS, TARGET)
        metric.decay(0.9)
        values.append(metric.compute())

    assert values == [pytest.approx(0.5625, abs=1e-12)] * 2


def test_before_the_first_decay_it_is_the_area_of_all_rows_so_far():
    metric, plain = DecayAUC(), AUC(200)
    for preds, target in ((PREDS, TARGET), ([0.2, 0.9], [0, 1])):
        metric.update(preds, target)
        plain.update(preds, target)

    assert metric.compute() == plain.compute()


def test_after_a_decay_rows_wait_in_the_buffer():
    metric = DecayAUC()
    metric.update([0.2, 0.9], [0, 1])
    metric.decay(0.9)
    metric.update([0.2, 0.9], [1, 0])

    assert metric.compute() == 1.0


def test_counts_are_mixed_by_the_rate():
    metric = DecayAUC()
    metric.update([0.2, 0.9], [0, 1])
    metric.decay(0.75)
    metric.update([0.2, 0.9], [1, 0])
    metric.decay(0.75)

    # Positives: 3/4 above and 1/4 below; negatives the other way round. Ties count half.
    assert metric.compute() == pytest.approx(0.75 * 0.75 + 2 * 0.75 * 0.25 / 2)


def test_a_window_of_one_class_is_undefined_and_a_later_one_mends_it():
    metric = DecayAUC()
    metric.update([0.9], [1])
    metric.decay(0.9)
    assert math.isnan(metric.compute())
    assert metric.undefined_because == "no negative rows"

    metric.update([0.1], [0])
    metric.decay(0.9)

    assert metric.compute() == 1.0


def test_rows_forgotten_after_the_first_decay_do_not_make_a_first_time_again():
    metric = DecayAUC()
    metric.update(PREDS, TARGET)
    metric.decay(0.9)
    metric.forget_rows()
    metric.update([0.2, 0.9], [0, 1])
    metric.decay(0.9)

    assert metric.state_dict()["counts"].sum() == pytest.approx(2 * (1 - 0.9))
