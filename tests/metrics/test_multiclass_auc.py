"""MulticlassAUC against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from penstock.config.errors import DataError
from penstock.metrics import multiclass_auc
from penstock.metrics.multiclass_auc import MulticlassAUC


def rows(num_rows, num_classes, seed=0):
    generator = np.random.default_rng(seed)
    target = generator.integers(0, num_classes, num_rows)
    logits = generator.normal(size=(num_rows, num_classes)) + np.eye(num_classes)[target]
    weights = np.exp(logits)
    return weights / weights.sum(axis=1, keepdims=True), target


def auc_of(preds, target, **settings):
    metric = MulticlassAUC(**settings)
    metric.update(preds, target)
    return metric.compute()


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_it_equals_scikit_learn(average):
    preds, target = rows(5000, 4)

    expected = roc_auc_score(target, preds, multi_class="ovr", average=average)
    assert auc_of(preds, target, average=average) == pytest.approx(expected, abs=1e-4)


def test_ties_count_half():
    preds = np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
    target = np.array([0, 1, 1])

    assert auc_of(preds, target) == pytest.approx(roc_auc_score(target, preds[:, 1]))


def test_classes_without_rows_are_left_out_of_the_mean():
    preds, target = rows(1000, 3)
    seen = target != 2

    areas = [roc_auc_score(target[seen] == own, preds[seen, own]) for own in (0, 1)]
    assert auc_of(preds[seen], target[seen]) == pytest.approx(np.mean(areas), abs=1e-4)


def test_rows_of_one_class_only_are_undefined():
    metric = MulticlassAUC()
    metric.update(np.array([[0.2, 0.8], [0.3, 0.7]]), [1, 1])

    assert (np.isnan(metric.compute()), metric.undefined_because) == (True, "rows of one class only")


def test_many_classes_share_the_memory(monkeypatch):
    monkeypatch.setattr(multiclass_auc, "MAX_CELLS", 1000)
    metric = MulticlassAUC()
    metric.update(*rows(10, 20))

    assert metric.state_dict()["counts"].shape == (20, 2, 50)


def test_another_number_of_classes_is_refused():
    metric = MulticlassAUC(thresholds=10)
    metric.update(*rows(10, 3))
    with pytest.raises(DataError, match="multiclass_auc: 4 classes after 3"):
        metric.update(*rows(10, 4))
    with pytest.raises(DataError, match=r"predictions of shape \(2,\); it needs \[rows, classes\]"):
        metric.update([0.5, 0.5], [0, 1])
    with pytest.raises(DataError, match="average is 'micro'; it is macro or weighted"):
        MulticlassAUC(average="micro")
