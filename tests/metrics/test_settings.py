"""Settings and values that a metric cannot use, from the run file, a caller, or a saved state."""

import pytest
from pydantic import ValidationError

from penstock.config.errors import CheckpointError, ConfigError, DataError
from penstock.config.load import parse_section
from penstock.metrics.auc import AUC, DecayAUC, MulticlassAUC
from penstock.metrics.binary import Accuracy, NormalizedEntropy
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.regression import MeanAbsoluteError
from penstock.metrics.retrieval import HitRateAtK, NDCGAtK, RecallAtK
from penstock.metrics.sections import WINDOWED, MetricConfig, TrainMetricConfig
from penstock.metrics.windows import TrainMetricWrapper
from penstock.metrics.xauc import XAUC, GroupedXAUC


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


WRONG = {
    "no whole number of thresholds": (
        lambda: AUC(thresholds=10.5),
        "10.5 thresholds; the area needs a whole number",
    ),
    "a rate above 1": (lambda: DecayAUC(10).decay(2.0), "auc: decays by a rate from 0 to 1, not 2.0"),
    "a rate that is no number": (lambda: DecayAUC(10).decay(float("nan")), "from 0 to 1, not nan"),
    "a threshold above 1": (lambda: Accuracy(threshold=2.0), "accuracy: threshold 2.0, top_k 1: from 0 to 1"),
    "the first none": (lambda: Accuracy(top_k=0), "top_k 0: from 0 to 1, and at least 1"),
    "no pairs": (
        lambda: XAUC(sample_ratio=0.0),
        "xauc: sample_ratio 0.0, max_pairs None: above 0 and up to 1",
    ),
    "pairs below 1": (lambda: XAUC(max_pairs=0), "max_pairs 0: above 0 and up to 1, and at least 1"),
    "words": (
        lambda: DecayAUC(10).update(["high", "low"], [1, 0]),
        "auc: predictions and labels are arrays of numbers, not of <U4",
    ),
    "nothing": (
        lambda: MeanAbsoluteError().update([None], [1.0]),
        "mean_absolute_error: predictions and labels are arrays of numbers, not of object",
    ),
}


@pytest.mark.parametrize(("make", "told"), WRONG.values(), ids=WRONG.keys())
def test_it_is_told_in_one_line(make, told):
    with pytest.raises(DataError) as caught:
        make()

    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rate", [1.0, 1.5])
def test_a_rate_that_would_never_let_the_value_change_is_refused(rate):
    told = (
        f"is {rate}; must be less than 1, such as 0.9: with 1 the value would stay that of the first window"
    )
    with pytest.raises(ValidationError, match=told):
        TrainMetricConfig.model_validate({"auc": {}, "decay_rate": rate})


@pytest.mark.parametrize("name", ["grouped_auc", "grouped_xauc"])
def test_grouped_metrics_are_for_evaluation(name):
    with pytest.raises(ConfigError) as caught:
        parse_section(TrainMetricConfig, f"{name}: {{grouping_key: user_id}}", "yaml")

    assert str(caught.value) == (
        f"line 1, column 1: {name}: cannot be used: it is for evaluation, since a group's rows are spread over "
        f"many windows: write it in metrics; train_metrics may have {', '.join(WINDOWED)}"
    )


@pytest.mark.parametrize(
    ("section", "config", "problem"),
    [
        (MetricConfig, {"auc": {"exact": True, "thresholds": 10}}, "exact takes no thresholds"),
        (TrainMetricConfig, {"auc": {"exact": True}}, "auc.exact is for evaluation"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(section, config, problem):
    with pytest.raises(ValidationError, match=problem):
        section.model_validate(config)
