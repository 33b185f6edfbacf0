"""ExactAUC against scikit-learn, in memory and on disk."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from penstock.metrics.exact_auc import LEVEL, ExactAUC

FEW = 100 * LEVEL.itemsize
"""Room for a hundred distinct predictions."""


def rows(num_rows, num_distinct=None, seed=0):
    generator = np.random.default_rng(seed)
    preds = (
        generator.random(num_rows)
        if num_distinct is None
        else generator.integers(0, num_distinct, num_rows) / 1e4
    )
    return preds, generator.random(num_rows) < preds


def fed(preds, target, limit_bytes=FEW, batch_rows=64, folder=None):
    metric = ExactAUC(limit_bytes, folder)
    for start in range(0, len(preds), batch_rows):
        metric.update(preds[start : start + batch_rows], target[start : start + batch_rows])
    return metric


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_that_differ_in_the_last_bit_are_no_ties(dtype):
    low = dtype(0.01)
    metric = fed(np.array([low, np.nextafter(low, dtype(1))], dtype), np.array([0, 1]))

    assert metric.compute() == 1.0


@pytest.mark.parametrize("num_distinct", [None, 50, 1000])
def test_it_equals_scikit_learn_however_much_is_on_disk(num_distinct, tmp_path):
    preds, target = rows(1500, num_distinct)

    metric = fed(preds, target, folder=tmp_path)

    assert metric.compute() == pytest.approx(roc_auc_score(target, preds), rel=1e-12)
    assert (metric.num_runs > 0) == (num_distinct != 50)
    assert len(list(tmp_path.rglob("run-*"))) == metric.num_runs


def test_what_is_held_stays_within_the_limit():
    preds, target = rows(1500)
    metric = ExactAUC(FEW)
    for start in range(0, 1500, 50):
        metric.update(preds[start : start + 50], target[start : start + 50])

        assert sum(levels.nbytes for levels in metric._held) <= FEW
    assert all(len(levels) <= 100 for levels in metric._blocks())


def test_reset_removes_the_files(tmp_path):
    metric = fed(*rows(1000), folder=tmp_path)
    metric.reset()

    assert (list(tmp_path.iterdir()), metric.undefined_because) == ([], "no rows")


def test_a_metric_that_is_no_longer_used_leaves_no_files(tmp_path):
    metric = fed(*rows(1000), folder=tmp_path)
    assert list(tmp_path.iterdir())

    del metric

    assert list(tmp_path.iterdir()) == []
