"""RecallAtK, HitRateAtK and NDCGAtK against scikit-learn and their definitions."""

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from penstock.config.errors import DataError
from penstock.metrics.retrieval import HitRateAtK, NDCGAtK, RecallAtK

EVERY_METRIC = [RecallAtK, HitRateAtK, NDCGAtK]


def value_of(make, top_k, similarities, target):
    metric = make(top_k)
    metric.update(similarities, target)
    return metric.compute()


def random_rows(num_rows=200, num_candidates=8):
    generator = np.random.default_rng(0)
    return generator.normal(size=(num_rows, num_candidates)), generator.random(
        (num_rows, num_candidates)
    ) < 0.3


def test_the_positive_is_the_first_candidate():
    similarities = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [0.5, 0.9, 0.1]])
    clicked = np.ones(3)

    assert value_of(RecallAtK, 1, similarities, clicked) == pytest.approx(1 / 3)
    assert value_of(HitRateAtK, 2, similarities, clicked) == pytest.approx(2 / 3)
    assert value_of(NDCGAtK, 3, similarities, clicked) == pytest.approx((1 + 1 / 2 + 1 / math.log2(3)) / 3)


def test_a_target_of_the_same_shape_says_which_candidates_are_right():
    similarities, target = np.array([[0.9, 0.1, 0.5, 0.4]]), np.array([[0, 1, 1, 1]])

    assert value_of(RecallAtK, 3, similarities, target) == pytest.approx(2 / 3)
    assert value_of(HitRateAtK, 1, similarities, target) == 0.0
    assert value_of(HitRateAtK, 2, similarities, target) == 1.0


@pytest.mark.parametrize("top_k", [1, 3, 8, 20])
def test_recall_and_hits_equal_their_definitions(top_k):
    similarities, target = random_rows()
    best = np.argsort(-similarities, axis=1)[:, :top_k]
    found = [relevant[chosen].sum() for relevant, chosen in zip(target, best, strict=True)]
    total = target.sum(axis=1)
    counted = total > 0

    recalls, hits = np.array(found)[counted] / total[counted], np.array(found)[counted] > 0
    assert value_of(RecallAtK, top_k, similarities, target) == pytest.approx(recalls.mean())
    assert value_of(HitRateAtK, top_k, similarities, target) == pytest.approx(hits.mean())


@pytest.mark.parametrize("top_k", [1, 3, 8, 20])
def test_ndcg_equals_scikit_learn(top_k):
    similarities, target = random_rows()
    counted = target.any(axis=1)

    expected = ndcg_score(target[counted], similarities[counted], k=top_k)
    assert value_of(NDCGAtK, top_k, similarities, target) == pytest.approx(expected)


@pytest.mark.parametrize("make", EVERY_METRIC)
def test_a_model_that_finds_everything_equal_finds_nothing(make):
    assert value_of(make, 2, np.full((4, 3), 0.5), np.ones(4)) == 0.0


@pytest.mark.parametrize("make", EVERY_METRIC)
def test_infinite_similarities_rank_as_values(make):
    similarities = np.array([[np.inf, 0.0, -np.inf], [-np.inf, 0.0, 1.0]])

    assert value_of(make, 1, similarities, np.ones(2)) == 0.5


@pytest.mark.parametrize("make", EVERY_METRIC)
def test_rows_without_a_right_candidate_say_nothing(make):
    metric = make(1)
    metric.update(np.array([[0.9, 0.1]]), np.array([[0, 0]]))
    assert metric.undefined_because == "no rows"

    metric.update(np.array([[0.9, 0.1]]), np.array([[1, 0]]))

    assert metric.compute() == 1.0


def test_what_has_no_candidates_is_refused():
    with pytest.raises(DataError, match=r"recall_at_k: predictions of shape \(2,\); it needs \[rows, cand"):
        RecallAtK().update([0.5, 0.5], [1, 1])
    with pytest.raises(DataError, match=r"recall_at_k: predictions \(1, 3\) for labels \(1, 2\)"):
        RecallAtK().update(np.zeros((1, 3)), np.zeros((1, 2)))
    with pytest.raises(DataError, match="ndcg_at_k: top_k is 0; it looks at 1 candidate or more"):
        NDCGAtK(0)
