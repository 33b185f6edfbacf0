import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from penstock.prep.sample_data.summary import AttainableAuc, AttainableError


def drawn(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    probabilities = rng.beta(0.5, 4.0, num_rows)
    return probabilities, (rng.random(num_rows) < probabilities).astype(np.int64)


def test_auc_is_that_of_scikit_learn():
    probabilities, labels = drawn(50_000)
    auc = AttainableAuc()

    for start in range(0, 50_000, 7_000):
        auc.update(probabilities[start : start + 7_000], labels[start : start + 7_000])

    assert auc.summarize().attainable_auc == pytest.approx(roc_auc_score(labels, probabilities), abs=1e-5)
    assert auc.summarize().mean == pytest.approx(labels.mean())


def test_ties_count_half():
    auc = AttainableAuc()
    auc.update(np.array([0.2, 0.5, 0.5, 0.9]), np.array([0, 0, 1, 1]))

    assert auc.summarize().attainable_auc == 3.5 / 4


def test_probability_one_has_a_bin():
    auc = AttainableAuc()
    auc.update(np.array([0.0, 1.0]), np.array([0, 1]))

    assert auc.summarize().attainable_auc == 1.0


def test_one_class_has_no_auc():
    auc = AttainableAuc()
    auc.update(np.array([0.2, 0.5]), np.array([0, 0]))

    assert auc.summarize().attainable_auc is None


def test_halves_merge_to_the_whole():
    probabilities, labels = drawn(1_000)
    whole, left, right = AttainableAuc(), AttainableAuc(), AttainableAuc()
    whole.update(probabilities, labels)
    left.update(probabilities[:400], labels[:400])
    right.update(probabilities[400:], labels[400:])

    left.merge(right)

    assert left.summarize() == whole.summarize()


def test_error_of_the_true_means():
    left, right = AttainableError(), AttainableError()
    left.update(np.array([1.0, 2.0]), np.array([1.0, 5.0], np.float32))
    right.update(np.array([0.0]), np.array([3.0], np.float32))

    left.merge(right)

    assert left.summarize().mean == 3.0
    assert left.summarize().attainable_rmse == pytest.approx(6.0**0.5)
