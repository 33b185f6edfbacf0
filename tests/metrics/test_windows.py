"""TrainMetricWrapper: windows that close, values that fade."""

import math

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.metrics.auc import DecayAUC
from penstock.metrics.row_means import MeanAbsoluteError
from penstock.metrics.windows import TrainMetricWrapper, window_misfit
from tests.metrics.ranks import on_ranks

NO_ROWS = np.array([])


def step(metric, error):
    """One step with one row that is wrong by `error`."""
    metric.update([error], [0.0])
    return metric.compute()


def test_a_window_of_three_steps():
    metric = TrainMetricWrapper(MeanAbsoluteError(), decay_rate=0.9, decay_step=3)

    values = [step(metric, error / 10) for error in range(1, 8)]

    assert values == pytest.approx([0.10, 0.15, 0.20, 0.20, 0.20, 0.23, 0.23])

    infinite = TrainMetricWrapper(MeanAbsoluteError(), decay_rate=0.9, decay_step=1)
    assert [step(infinite, math.inf), step(infinite, 0.5)] == [math.inf, 0.5]  # forgotten with the next


def test_batches_without_rows_advance_the_count_and_add_nothing():
    metric = TrainMetricWrapper(MeanAbsoluteError(), decay_step=2)
    for _ in range(2):
        metric.update(NO_ROWS, NO_ROWS)
    assert (metric.num_steps, metric.undefined_because) == (2, "no rows")

    step(metric, 0.3)
    for _ in range(3):
        metric.update(NO_ROWS, NO_ROWS)

    assert (metric.num_steps, metric.remark, metric.compute()) == (6, None, 0.3)


def test_nan_predictions_of_all_windows_are_counted():
    metric = TrainMetricWrapper(MeanAbsoluteError(), decay_step=1)
    for _ in range(3):
        metric.update([np.nan, 0.5], [0.0, 0.0])

    assert (metric.num_left_out, metric.compute()) == (3, 0.5)


def random_steps(num_steps, num_rows=8):
    generator = np.random.default_rng(0)
    return [(generator.random(num_rows), generator.random(num_rows) < 0.4) for _ in range(num_steps)]


@pytest.mark.parametrize("make", [DecayAUC, MeanAbsoluteError])
@pytest.mark.parametrize("stop", [0, 2, 3])
def test_a_saved_metric_goes_on_where_it_was(make, stop):
    before, after, whole = (TrainMetricWrapper(make(), 0.8, decay_step=3) for _ in range(3))
    for index, batch in enumerate(random_steps(7)):
        whole.update(*batch)
        if index < stop:
            before.update(*batch)
    after.load_state_dict(before.state_dict())
    for batch in random_steps(7)[stop:]:
        after.update(*batch)

    np.testing.assert_equal(after.state_dict(), whole.state_dict())


@pytest.mark.parametrize("make", [DecayAUC, MeanAbsoluteError])
def test_what_two_ranks_saved_goes_on_with_three(make):
    steps = random_steps(8)
    whole = TrainMetricWrapper(make(), 0.8, decay_step=3)
    for batch in steps:
        whole.update(*batch)

    def save(rank, collectives):
        metric = TrainMetricWrapper(make(), 0.8, 3, collectives)
        for preds, target in steps[:5]:
            metric.update(preds[rank::2], target[rank::2])
        return metric.reduced(collectives).state_dict()

    saved = on_ranks(2, save)[0]

    def go_on(rank, collectives):
        metric = TrainMetricWrapper(make(), 0.8, 3, collectives)
        metric.load_state_dict(saved)
        if rank > 0:
            metric.forget_rows()
        for preds, target in steps[5:]:
            metric.update(preds[rank::3], target[rank::3])
        return metric.compute()

    assert on_ranks(3, go_on) == pytest.approx([whole.compute()] * 3, abs=1e-12)


def test_only_metrics_at_the_same_step_are_merged():
    left, right = (TrainMetricWrapper(MeanAbsoluteError(), decay_step=10) for _ in range(2))
    step(left, 0.1)
    with pytest.raises(DataError, match="a train metric at step 0 cannot be merged with one at 1"):
        left.merge(right)

    step(right, 0.3)
    left.merge(right)

    assert left.compute() == pytest.approx(0.2)


def test_a_log_line_in_the_middle_of_a_window_is_told_with_values_that_fit():
    assert window_misfit(100, [50, 100]) is None
    assert window_misfit(100, [30]) == (
        "log_step_count_steps 100 is not a multiple of decay_step 30: the log shows the value of the last "
        "closed window; decay_step 25 or 50 or log_step_count_steps 90 fit"
    )
    assert window_misfit(100, [300]).endswith("decay_step 100 or log_step_count_steps 300 fit")
