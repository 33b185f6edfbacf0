"""ExactAUC against scikit-learn, in memory and on disk."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from penstock.config.errors import CheckpointError, ConfigError, DataError
from penstock.metrics import build_metrics
from penstock.metrics.exact_auc import LEVEL, ExactAUC
from penstock.tensors.sections.metrics import MetricConfig, TrainMetricConfig
from tests.metrics.ranks import on_ranks

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


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(np.linspace(0, 1, 9)), st.booleans()), max_size=60), st.integers(0, 60)
)
def test_merging_the_parts_of_any_split_gives_the_whole(pairs, cut):
    preds, target = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs], dtype=bool)
    small = 4 * LEVEL.itemsize
    left, right = fed(preds[:cut], target[:cut], small, 7), fed(preds[cut:], target[cut:], small, 7)
    left.merge(right)

    np.testing.assert_equal(left.state_dict(), fed(preds, target).state_dict())
    if 0 < target.sum() < len(target):
        assert left.compute() == pytest.approx(roc_auc_score(target, preds), rel=1e-12)
    else:
        assert math.isnan(left.compute())
        assert left.undefined_because is not None


def test_ranks_with_different_numbers_of_rows_see_the_rows_of_all():
    preds, target = rows(900, num_distinct=1500)

    def evaluate(rank, collectives):
        part = [slice(0, 700), slice(700, 900), slice(0, 0)][rank]
        return fed(preds[part], target[part]).reduced(collectives).compute()

    assert on_ranks(3, evaluate) == [pytest.approx(roc_auc_score(target, preds), rel=1e-12)] * 3


def test_a_saved_metric_goes_on_where_it_was():
    preds, target = rows(1000)
    before, after = fed(preds[:600], target[:600]), ExactAUC(FEW)
    after.load_state_dict(before.state_dict())
    after.update(preds[600:], target[600:])

    assert after.compute() == pytest.approx(roc_auc_score(target, preds), rel=1e-12)
    with pytest.raises(CheckpointError, match="auc: the saved state has"):
        after.load_state_dict({"counts": np.zeros(3)})


def test_nan_is_left_out_and_logits_are_refused():
    metric = ExactAUC()
    metric.update([0.1, np.nan, 0.9], [0, 0, 1])

    assert (metric.compute(), metric.num_left_out) == (1.0, 1)
    with pytest.raises(DataError, match="these look like logits"):
        metric.update([np.inf], [1])


def test_the_run_file_asks_for_it():
    built = build_metrics([MetricConfig.model_validate({"auc": {"exact": True}})], ["probs"], label="y")

    assert isinstance(built["auc"].metric, ExactAUC)


@pytest.mark.parametrize(
    ("section", "config", "problem"),
    [
        (MetricConfig, {"auc": {"exact": True, "thresholds": 10}}, "exact takes no thresholds"),
        (TrainMetricConfig, {"auc": {"exact": True}}, "auc.exact is for evaluation"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(section, config, problem):
    with pytest.raises((ConfigError, ValueError), match=problem):
        section.model_validate(config)
