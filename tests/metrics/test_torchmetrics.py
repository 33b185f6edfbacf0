"""TrainMetricWrapper around objects of torchmetrics, which is what people have."""

import copy
import warnings

import numpy as np
import pytest
import torch
import torchmetrics
from torchmetrics.classification import BinaryAUROC, BinaryConfusionMatrix

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics import TrainMetricWrapper
from penstock.runtime.world import Collectives, World
from tests.distributed.two_ranks import run_on_two_ranks
from tests.metrics.ranks import on_ranks

METRICS = {
    "sums": lambda: BinaryAUROC(thresholds=20),
    "sums of squares": torchmetrics.MeanSquaredError,
    "all rows": lambda: BinaryAUROC(thresholds=None),
    "max": torchmetrics.MaxMetric,
    "of two": lambda: torchmetrics.MeanSquaredError() + torchmetrics.MeanAbsoluteError(),
}
every_metric = pytest.mark.parametrize("kind", METRICS)


class MeanOfBatches(torchmetrics.Metric):
    """The mean over batches of their largest prediction."""

    def __init__(self, reduce="mean"):
        super().__init__()
        self.add_state("mean", torch.tensor(0.0), dist_reduce_fx=reduce)
        self.add_state("num_batches", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, preds, target):
        self.num_batches += 1
        self.mean += (preds.max() - self.mean) / self.num_batches

    def compute(self):
        return self.mean


def random_steps(num_steps, num_rows=12):
    generator = torch.Generator().manual_seed(0)
    preds = torch.rand(num_steps, num_rows, generator=generator)
    return list(
        zip(preds, (torch.rand(num_steps, num_rows, generator=generator) < preds).long(), strict=True)
    )


def arguments(kind, preds, target):
    return (preds,) if kind == "max" else (preds, target)


def blended(make, steps, decay_rate, decay_step):
    """By hand: the value of each window of steps, and the values so far faded."""
    value = None
    for first in range(0, len(steps) - decay_step + 1, decay_step):
        metric = make()
        for step in steps[first : first + decay_step]:
            metric.update(*step)
        window = float(metric.compute())
        value = window if value is None else decay_rate * value + (1 - decay_rate) * window
    return value


@every_metric
def test_windows_are_computed_reset_and_faded(kind):
    steps = [arguments(kind, *step) for step in random_steps(11)]
    wrapper = TrainMetricWrapper(METRICS[kind](), decay_rate=0.8, decay_step=3)
    for step in steps:
        wrapper.update(*step)

    assert wrapper.compute() == pytest.approx(blended(METRICS[kind], steps, 0.8, 3), rel=1e-12)


def test_arguments_are_passed_on_and_batches_without_rows_are_not():
    wrapper = TrainMetricWrapper(torchmetrics.MeanMetric(), decay_rate=0.5, decay_step=2)
    assert (np.isnan(wrapper.compute()), wrapper.undefined_because) == (True, "no rows")

    wrapper.update(torch.tensor([1.0, 4.0]), weight=torch.tensor([2.0, 1.0]))
    assert (wrapper.compute(), wrapper.remark) == (2.0, "of the first window, which is still open")
    wrapper.update(value=torch.tensor([]))
    assert (wrapper.num_steps, wrapper.compute(), wrapper.remark) == (2, 2.0, None)
    for value in (5.0, 7.0):
        wrapper.update(value)

    assert wrapper.compute() == 0.5 * 2.0 + 0.5 * 6.0


@every_metric
@pytest.mark.parametrize("stop", [0, 2, 3, 4])
def test_a_saved_metric_goes_on_where_it_was_in_the_middle_of_a_window(kind, stop):
    steps = [arguments(kind, *step) for step in random_steps(7)]
    before, after, whole = (TrainMetricWrapper(METRICS[kind](), 0.8, 3) for _ in range(3))
    for step in steps[:stop]:
        before.update(*step)
    saved = before.state_dict()
    kept = copy.deepcopy(saved)
    before.update(*steps[0])  # what was saved does not follow
    np.testing.assert_equal(saved, kept)
    assert all(isinstance(array, np.ndarray) for array in saved.values())

    after.load_state_dict(saved)
    for step in steps:
        whole.update(*step)
    for step in steps[stop:]:
        after.update(*step)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert after.compute() == whole.compute()
    np.testing.assert_equal(after.state_dict(), whole.state_dict())


@pytest.mark.parametrize("kind", [kind for kind in METRICS if kind != "of two"])
def test_three_ranks_one_of_them_without_rows_close_a_window_over_the_rows_of_all(kind):
    steps = random_steps(8)
    whole = TrainMetricWrapper(METRICS[kind](), 0.8, 3)
    for step in steps:
        whole.update(*arguments(kind, *step))

    def train(rank, collectives):
        rows = (slice(0, 5), slice(5, 12), slice(12, 12))[rank]
        wrapper = TrainMetricWrapper(METRICS[kind](), 0.8, 3, collectives)
        for preds, target in steps:
            wrapper.update(*arguments(kind, preds[rows], target[rows]))
        return wrapper.compute(), wrapper.reduced(collectives).metric.compute()

    expected = pytest.approx([whole.compute(), whole.metric.compute()], rel=1e-6)
    assert [list(values) for values in on_ranks(3, train)] == [expected] * 3


def train_on_a_rank(world: World, collectives: Collectives) -> list[float]:
    """A process group in which the object would synchronise by itself, in a compute that the second rank leaves out."""
    wrapper = TrainMetricWrapper(METRICS["sums"](), 0.8, 3, collectives)
    values = []
    for preds, target in random_steps(8):
        wrapper.update(preds[world.rank :: 2], target[world.rank :: 2])
        if world.is_first:
            values.append(wrapper.compute())
    return [*values[3:], wrapper.compute()]


@pytest.mark.slow
def test_two_processes_agree_with_one():
    whole = TrainMetricWrapper(METRICS["sums"](), 0.8, 3)
    values = []
    for step in random_steps(8):
        whole.update(*step)
        values.append(whole.compute())

    first, second = run_on_two_ranks(train_on_a_rank)
    assert first == pytest.approx([*values[3:], values[-1]])
    assert second == pytest.approx([values[-1]])


def test_means_of_ranks_count_by_their_updates():
    def train(rank, collectives):
        wrapper = TrainMetricWrapper(MeanOfBatches(), 0.5, 3, collectives)
        for value in ([1.0, 2.0, 3.0], [8.0])[rank]:
            wrapper.update(torch.tensor([value]), torch.tensor([0]))
        for _ in range(2 * rank):
            wrapper.update(torch.tensor([]), torch.tensor([]))
        return wrapper.compute()

    assert on_ranks(2, train) == [3.5, 3.5]


def largest(states):
    return states.max()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MeanOfBatches(reduce=largest),
            "MeanOfBatches: its state 'mean' is reduced by largest; on several ranks a state is reduced by sum, ",
        ),
        (torchmetrics.PearsonCorrCoef, "PearsonCorrCoef: its state 'mean_x' is reduced by no function; on "),
        (
            METRICS["of two"],
            "its state 'metric_a.sum_squared_error' is reduced by no function; on several ranks",
        ),
    ],
)
def test_other_reductions_are_refused_on_several_ranks_and_work_on_one(make, message):
    wrapper = TrainMetricWrapper(make(), decay_step=1)
    wrapper.update(torch.tensor([0.1, 0.2, 0.4]), torch.tensor([0.3, 0.2, 0.5]))
    assert wrapper.compute() > 0

    with pytest.raises(DataError) as caught:
        on_ranks(2, lambda _, collectives: TrainMetricWrapper(make(), collectives=collectives))
    assert str(caught.value).startswith((message, f"CompositionalMetric: {message}"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            BinaryConfusionMatrix,
            "BinaryConfusionMatrix: compute gives a Tensor of shape (2, 2); a train metric is one",
        ),
        (
            lambda: torchmetrics.MetricCollection([BinaryAUROC()]),
            "MetricCollection is no metric; give an object such",
        ),
        (
            lambda: BinaryAUROC,
            "BinaryAUROC is no metric; give an object such as DecayAUC(), or a metric of torchmet",
        ),
    ],
)
def test_what_does_not_give_one_number_is_refused_in_one_line(make, message):
    with pytest.raises(DataError) as caught:
        TrainMetricWrapper(make(), decay_step=1).update(torch.tensor([0.5]), torch.tensor([1]))

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_states_of_other_metrics_are_refused():
    saved = TrainMetricWrapper(METRICS["sums"]()).state_dict()

    with pytest.raises(CheckpointError, match=r"the saved confmat has shape \(20, 2, 2\), not \(30, 2, 2\)"):
        TrainMetricWrapper(BinaryAUROC(thresholds=30)).load_state_dict(saved)
    with pytest.raises(CheckpointError, match=r"MeanSquaredError: the saved state has .*confmat.*, not "):
        TrainMetricWrapper(torchmetrics.MeanSquaredError()).load_state_dict(saved)
