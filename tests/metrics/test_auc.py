"""AUC, DecayAUC and MulticlassAUC against scikit-learn and their definitions."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics import auc
from penstock.metrics.auc import AUC, DecayAUC, MulticlassAUC


def auc_of(preds, target, thresholds=None):
    metric = AUC(thresholds)
    metric.update(preds, target)
    return metric.compute()


def test_the_example_of_ten_thresholds():
    preds = np.arange(1, 9, dtype=np.float32) / 10
    target = np.array([1, 0, 1, 0, 0, 0, 1, 1])

    assert auc_of(preds, target, thresholds=10) == pytest.approx(0.5625, abs=1e-12)


@pytest.mark.parametrize("base_rate", [0.2, 0.01])
def test_the_histogram_is_within_a_ten_thousandth_of_the_exact_area(base_rate):
    generator = np.random.default_rng(0)
    preds = generator.beta(1, 1 / base_rate, 200_000)
    target = generator.random(200_000) < preds

    assert auc_of(preds, target) == pytest.approx(roc_auc_score(target, preds), abs=1e-4)


def test_ties_count_half_exactly_as_in_scikit_learn():
    generator = np.random.default_rng(1)
    preds = generator.integers(0, 5, 1000) / 4
    target = generator.random(1000) < 0.3 + 0.4 * preds

    assert auc_of(preds, target) == pytest.approx(roc_auc_score(target, preds), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("thresholds", [2, 11, 200])
def test_given_thresholds_are_exactly_those(dtype, thresholds):
    generator = np.random.default_rng(2)
    preds = np.concatenate([generator.random(500), np.linspace(0, 1, thresholds)]).astype(dtype)
    target = generator.random(len(preds)) < 0.4

    assert auc_of(preds, target, thresholds) == pytest.approx(trapezoid(preds, target, thresholds), abs=1e-12)


def trapezoid(preds, target, thresholds):
    """The area by comparing every prediction with every threshold."""
    reached = preds[:, None] >= np.linspace(0, 1, thresholds).astype(preds.dtype)
    true_rate = [*reached[target].mean(axis=0), 0.0]
    false_rate = [*reached[~target].mean(axis=0), 0.0]
    return -np.trapezoid(true_rate, false_rate)


def test_rows_of_full_confidence_are_ties_too():
    assert auc_of(np.ones(4), [1, 0, 1, 0], thresholds=10) == 0.5


@pytest.mark.parametrize(
    ("target", "reason"), [([], "no rows"), ([0, 0], "no positive rows"), ([1, 1], "no negative rows")]
)
def test_without_both_classes_it_is_undefined_with_a_reason(target, reason):
    metric = AUC()
    metric.update(np.full(len(target), 0.5), target)

    assert math.isnan(metric.compute())
    assert metric.undefined_because == reason


def test_logits_are_refused():
    with pytest.raises(
        DataError, match=r"auc: predictions run from -2 to 3.5, outside \[0, 1\]: these look like logits"
    ):
        auc_of(np.array([-2.0, 3.5]), [0, 1])
    with pytest.raises(DataError, match="outside"):
        auc_of(np.array([0.5, np.inf]), [0, 1])


def test_labels_other_than_0_and_1_are_refused():
    with pytest.raises(DataError, match="auc: the label 3 is neither 0 nor 1"):
        auc_of(np.array([0.1, 0.2]), np.array([0, 3]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_torch_tensors_are_read_even_with_gradients(dtype):
    preds = torch.tensor([0.25, 0.75, 0.5], dtype=dtype, requires_grad=True)

    assert auc_of(preds, torch.tensor([0, 1, 1])) == 1.0


def test_a_state_of_other_thresholds_is_refused():
    with pytest.raises(CheckpointError, match=r"auc: the saved counts has shape \(2, 10\), not \(2, 20\)"):
        AUC(20).load_state_dict(AUC(10).state_dict())
    with pytest.raises(DataError, match=r"counts of shape \(2, 10\) cannot be merged with shape \(2, 20\)"):
        AUC(20).merge(AUC(10))


PREDS = np.arange(1, 9) / 10

TARGET = np.array([1, 0, 1, 0, 0, 0, 1, 1])


def test_the_example_of_ten_thresholds_stays_when_it_decays():
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


def rows(num_rows, num_classes, seed=0):
    generator = np.random.default_rng(seed)
    target = generator.integers(0, num_classes, num_rows)
    logits = generator.normal(size=(num_rows, num_classes)) + np.eye(num_classes)[target]
    weights = np.exp(logits)
    return weights / weights.sum(axis=1, keepdims=True), target


def class_auc_of(preds, target, **settings):
    metric = MulticlassAUC(**settings)
    metric.update(preds, target)
    return metric.compute()


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_each_class_against_the_rest_equals_scikit_learn(average):
    preds, target = rows(5000, 4)

    expected = roc_auc_score(target, preds, multi_class="ovr", average=average)
    assert class_auc_of(preds, target, average=average) == pytest.approx(expected, abs=1e-4)


def test_ties_of_classes_count_half():
    preds = np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
    target = np.array([0, 1, 1])

    assert class_auc_of(preds, target) == pytest.approx(roc_auc_score(target, preds[:, 1]))


def test_classes_without_rows_are_left_out_of_the_mean():
    preds, target = rows(1000, 3)
    seen = target != 2

    areas = [roc_auc_score(target[seen] == own, preds[seen, own]) for own in (0, 1)]
    assert class_auc_of(preds[seen], target[seen]) == pytest.approx(np.mean(areas), abs=1e-4)


def test_rows_of_one_class_only_are_undefined():
    metric = MulticlassAUC()
    metric.update(np.array([[0.2, 0.8], [0.3, 0.7]]), [1, 1])

    assert (np.isnan(metric.compute()), metric.undefined_because) == (True, "rows of one class only")


def test_many_classes_share_the_memory(monkeypatch):
    monkeypatch.setattr(auc, "MAX_CELLS", 1000)
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
