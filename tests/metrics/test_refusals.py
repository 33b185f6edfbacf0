"""Settings and values that a metric cannot use, from the run file, a caller, or a saved state."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from penstock.config.errors import CheckpointError, ConfigError, DataError
from penstock.config.load import parse_section
from penstock.metrics.auc import AUC, DecayAUC, MulticlassAUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.row_means import (
    Accuracy,
    Calibration,
    MeanSquaredError,
    NDCGAtK,
    NormalizedEntropy,
    RecallAtK,
)
from penstock.metrics.sections import WINDOWED, MetricConfig, TrainMetricConfig
from penstock.metrics.windows import TrainMetricWrapper
from penstock.metrics.xauc import XAUC, GroupedXAUC

OTHER_SETTINGS = [
    (Accuracy(0.5), Accuracy(0.7), "accuracy", "threshold", ("0.5", "0.7")),
    (RecallAtK(5), RecallAtK(10), "recall_at_k", "top_k", ("5", "10")),
    (NormalizedEntropy(), NormalizedEntropy(1e-6), "normalized_entropy", "eta", ("1e-12", "1e-06")),
    (MulticlassAUC(), MulticlassAUC(average="weighted"), "multiclass_auc", "average", ("macro", "weighted")),
    (GroupedAUC(), GroupedAUC("rows"), "grouped_auc", "weight", ("none", "rows")),
    (XAUC(), XAUC(in_batch=True), "xauc", "in_batch", ("False", "True")),
]


@pytest.mark.parametrize(("one", "other", "name", "setting", "values"), OTHER_SETTINGS)
def test_other_settings_are_neither_loaded_nor_merged(one, other, name, setting, values):
    first, second = values
    with pytest.raises(CheckpointError) as caught:
        other.load_state_dict(one.state_dict())
    assert str(caught.value) == f"{name}: the saved state has {setting} {first}; it is {second} now"

    message = (
        f"{name}: {setting} {second} cannot be merged with {setting} {first}; give both the same settings"
    )
    with pytest.raises(DataError, match=message):
        one.merge(other)


def test_counts_at_other_thresholds_are_refused():
    with pytest.raises(CheckpointError, match=r"auc: the saved counts has shape \(2, 10\), not \(2, 20\)"):
        AUC(20).load_state_dict(AUC(10).state_dict())
    with pytest.raises(DataError, match=r"counts of shape \(2, 10\) cannot be merged with shape \(2, 20\)"):
        AUC(20).merge(AUC(10))


@pytest.mark.parametrize(
    ("metric", "column"), [(GroupedAUC(), "key, pred, target"), (XAUC(), "preds, target, lots")]
)
def test_a_torn_state_is_refused(metric, column):
    state = metric.state_dict()
    with pytest.raises(CheckpointError, match=f"the saved {column} differ in length"):
        metric.load_state_dict({**state, "target": np.zeros(3)})


WRONG_SETTINGS = [
    (lambda: AUC(thresholds=10.5), "10.5 thresholds; the area needs a whole number"),
    (lambda: MulticlassAUC(average="micro"), "average is 'micro'; it is macro or weighted"),
    (lambda: DecayAUC(10).decay(2.0), "auc: decays by a rate from 0 to 1, not 2.0"),
    (lambda: Accuracy(threshold=2.0), "accuracy: threshold 2.0, top_k 1: from 0 to 1"),
    (lambda: NDCGAtK(0), "ndcg_at_k: top_k is 0; it looks at 1 candidate or more"),
    (lambda: XAUC(in_batch=True, exact=True), "in_batch and exact exclude each other"),
    (lambda: GroupedAUC("clicks"), "weight is 'clicks'; it is one of none, rows, positives"),
    (lambda: TrainMetricWrapper(AUC(), 1.0), "decay_rate 1.0: rates are from 0 to below 1"),
    (lambda: TrainMetricWrapper(AUC(), 0.9, 1.5), "decay_step 1.5: windows have a whole number of steps"),
    (lambda: TrainMetricWrapper(DecayAUC), "is no metric; give an object such as DecayAUC()"),
]

OF_THREE_CLASSES = MulticlassAUC(thresholds=10)
OF_THREE_CLASSES.update(np.full((1, 3), 1 / 3), [0])

WRONG_ROWS = [
    (
        AUC(),
        ([-2.0, 3.5], [0, 1]),
        "auc: predictions run from -2 to 3.5, outside [0, 1]: these look like logits",
    ),
    (AUC(), ([0.1, 0.2], [0, 3]), "auc: the label 3 is neither 0 nor 1"),
    (DecayAUC(), (["high", "low"], [1, 0]), "auc: predictions and labels are arrays of numbers, not of <U4"),
    (Accuracy(), ([[0.4, 0.3, 0.3]], [3]), "accuracy: the label 3 is no class from 0 to 2"),
    (
        Calibration(),
        ([[0.5, 0.5]], [0]),
        "calibration: predictions of 2 classes; give it the probability of one",
    ),
    (MulticlassAUC(), ([0.5, 0.5], [0, 1]), "predictions of shape (2,); it needs [rows, classes]"),
    (OF_THREE_CLASSES, (np.full((1, 4), 0.25), [0]), "multiclass_auc: 4 classes after 3"),
    (
        RecallAtK(),
        ([0.5, 0.5], [1, 1]),
        "recall_at_k: predictions of shape (2,); it needs [rows, candidates]",
    ),
    (RecallAtK(), (np.zeros((1, 3)), np.zeros((1, 2))), "predictions (1, 3) for labels (1, 2)"),
    (
        MeanSquaredError(),
        ([1, 2], [1, math.nan]),
        "mean_squared_error: the label of row 1 of the batch is NaN",
    ),
    (GroupedAUC(), ([1, 2], [0, 1], [1]), "grouped_auc: 2 predictions for 2 labels and 1 groups"),
    (GroupedAUC(), ([1, 2], [0, 1], ["a", 1]), "grouped_auc: the groups are not ids of one kind"),
    (GroupedXAUC(), ([1, 2], [1, math.nan], [1, 1]), "grouped_xauc: the label of row 1 is not a number"),
]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *WRONG_SETTINGS,
        *((lambda m=m, rows=rows: m.update(*rows), message) for m, rows, message in WRONG_ROWS),
    ],
)
def test_wrong_settings_and_rows_are_refused_in_one_line(make, message):
    with pytest.raises(DataError) as caught:
        make()

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "config", "problem"),
    [
        (MetricConfig, {"auc": {"exact": True, "thresholds": 10}}, "exact takes no thresholds"),
        (TrainMetricConfig, {"auc": {"exact": True}}, "auc.exact is for evaluation"),
        (
            TrainMetricConfig,
            {"auc": {}, "decay_rate": 1.0},
            "is 1.0; must be less than 1, such as 0.9: with 1 the value would stay that of the first window",
        ),
    ],
)
def test_settings_of_a_run_file_that_cannot_be_used(section, config, problem):
    with pytest.raises(ValidationError, match=problem):
        section.model_validate(config)


def test_grouped_metrics_are_for_evaluation():
    with pytest.raises(ConfigError) as caught:
        parse_section(TrainMetricConfig, "grouped_auc: {grouping_key: user_id}", "yaml")

    assert str(caught.value) == (
        "line 1, column 1: grouped_auc: cannot be used: it is for evaluation, since a group's rows are spread over "
        f"many windows: write it in metrics; train_metrics may have {', '.join(WINDOWED)}"
    )
