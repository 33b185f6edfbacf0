"""Metrics that do not count alike are not merged, and none goes on from the state of another."""

import pytest

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.accuracy import Accuracy
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.grouped_xauc import GroupedXAUC
from penstock.metrics.multiclass_auc import MulticlassAUC
from penstock.metrics.normalized_entropy import NormalizedEntropy
from penstock.metrics.retrieval import HitRateAtK, NDCGAtK, RecallAtK
from penstock.metrics.windows import TrainMetricWrapper
from penstock.metrics.xauc import XAUC


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (Accuracy(0.5), Accuracy(0.7), "accuracy: threshold 0.7 cannot be merged with threshold 0.5"),
        (Accuracy(top_k=1), Accuracy(top_k=2), "accuracy: top_k 2 cannot be merged with top_k 1"),
        (RecallAtK(5), RecallAtK(10), "recall_at_k: top_k 10 cannot be merged with top_k 5"),
        (HitRateAtK(5), HitRateAtK(10), "hit_rate_at_k: top_k 10 cannot be merged"),
        (NDCGAtK(5), NDCGAtK(10), "ndcg_at_k: top_k 10 cannot be merged"),
        (NormalizedEntropy(), NormalizedEntropy(1e-6), "eta 1e-06 cannot be merged with eta 1e-12"),
        (MulticlassAUC(), MulticlassAUC(average="weighted"), "average weighted cannot be merged"),
        (GroupedAUC(), GroupedAUC("rows"), "grouped_auc: weight rows cannot be merged with weight none"),
        (GroupedXAUC(100), GroupedXAUC(5), "grouped_xauc: max_pairs_per_group 5 cannot be merged"),
        (GroupedXAUC(seed=0), GroupedXAUC(seed=1), "grouped_xauc: seed 1 cannot be merged with seed 0"),
        (XAUC(), XAUC(in_batch=True), "xauc: in_batch True cannot be merged with in_batch False"),
        (XAUC(), XAUC(max_pairs=5), "xauc: max_pairs 5 cannot be merged with max_pairs None"),
    ],
)
def test_other_settings_are_refused(one, other, message):
    with pytest.raises(DataError, match=f"{message}.*; give both the same settings"):
        one.merge(other)


@pytest.mark.parametrize(
    ("saved", "now", "message"),
    [
        (Accuracy(0.5), Accuracy(0.7), "accuracy: the saved state has threshold 0.5; it is 0.7 now"),
        (RecallAtK(5), RecallAtK(10), "recall_at_k: the saved state has top_k 5; it is 10 now"),
        (
            MulticlassAUC(),
            MulticlassAUC(average="weighted"),
            "multiclass_auc: the saved state has average macro; it is weighted now",
        ),
        (XAUC(), XAUC(in_batch=True), "xauc: the saved state has in_batch False; it is True now"),
        (XAUC(), XAUC(exact=True), "xauc: the saved state has exact False; it is True now"),
        (XAUC(), XAUC(max_pairs=5), "xauc: the saved state has max_pairs None; it is 5 now"),
        (
            TrainMetricWrapper(XAUC(sample_ratio=0.5)),
            TrainMetricWrapper(XAUC(sample_ratio=0.25)),
            "xauc: the saved state has sample_ratio 0.5; it is 0.25 now",
        ),
    ],
)
def test_a_state_of_other_settings_is_refused(saved, now, message):
    with pytest.raises(CheckpointError) as caught:
        now.load_state_dict(saved.state_dict())

    assert str(caught.value) == message
