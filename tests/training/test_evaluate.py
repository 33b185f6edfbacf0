"""The evaluation loop: every row once, the same means for any cut into batches, and the model as it was."""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import torch
from torch import nn

from penstock.models.losses import weighted_mean
from penstock.training.evaluate import LossMeans, evaluate, evaluation_mode
from penstock.training.task_metrics import TaskMetrics


@dataclass(frozen=True)
class LabelledBatch:
    """Labels alone."""

    labels: dict[str, torch.Tensor]
    weights: torch.Tensor | None = None

    @property
    def num_rows(self) -> int:
        return len(self.labels["click"])


@dataclass
class Recorder:
    """A metric that keeps what it was given."""

    seen: list[tuple[float, float]] = field(default_factory=list)

    def update(self, predictions, batch):
        self.seen += zip(predictions["probs"].tolist(), batch.labels["click"].tolist(), strict=True)

    def compute(self):
        return {"count": float(len(self.seen))}

    def remarks(self):
        return {}


class Doubler:
    """Predicts twice the label; its loss is the weighted mean of the labels."""

    def predict(self, batch):
        assert not torch.is_grad_enabled()
        return {"probs": batch.labels["click"] * 2}

    def loss(self, predictions, batch):
        return {"mean_label": weighted_mean(batch.labels["click"], batch.weights)}

    def loss_weights(self, batch):
        return {"mean_label": float(batch.num_rows if batch.weights is None else batch.weights.sum())}


def batch_of(*labels: float) -> LabelledBatch:
    return LabelledBatch({"click": torch.tensor(labels)})


def test_every_row_reaches_the_metrics_once_and_in_order():
    recorder, told = Recorder(), []

    found = evaluate(nn.Linear(1, 1), Doubler(), [batch_of(1.0, 2.0), batch_of(3.0)], recorder, told.append)

    assert recorder.seen == [(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]
    assert found.metrics == {"count": 3.0}
    assert found.rows == 3
    assert [batch.num_rows for batch in told] == [2, 1]


def test_the_mean_of_a_loss_is_by_rows_not_by_batches():
    found = evaluate(nn.Linear(1, 1), Doubler(), [batch_of(1.0, 1.0, 1.0), batch_of(5.0)], TaskMetrics({}))

    assert found.losses == {"mean_label": pytest.approx(2.0)}


@pytest.mark.parametrize("weights", [None, torch.tensor([4.0, 0.0, 0.0, 1.0, 3.0, 0.5])])
@pytest.mark.parametrize("cuts", [[0, 6], [0, 2, 4, 6], [0, 1, 3, 6], [0, 1, 2, 3, 4, 5, 6]])
def test_the_mean_of_a_loss_does_not_depend_on_the_cut(cuts, weights):
    labels = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    batches = [
        LabelledBatch({"click": labels[begin:end]}, None if weights is None else weights[begin:end])
        for begin, end in pairwise(cuts)
    ]

    expected = 3.5 if weights is None else (4 * 1 + 1 * 4 + 3 * 5 + 0.5 * 6) / 8.5
    assert evaluate(nn.Linear(1, 1), Doubler(), batches, TaskMetrics({})).losses == {
        "mean_label": pytest.approx(expected)
    }


def test_a_loss_of_rows_that_all_weigh_nothing_is_undefined_and_says_why():
    batches = [LabelledBatch({"click": torch.tensor([5.0])}, torch.zeros(1))] * 2

    found = evaluate(nn.Linear(1, 1), Doubler(), batches, TaskMetrics({}))

    assert math.isnan(found.losses["mean_label"])
    assert found.remarks == {"mean_label": "no row weighs anything"}


def test_no_batch_gives_no_loss():
    found = evaluate(nn.Linear(1, 1), Doubler(), [], TaskMetrics({}))

    assert (found.losses, found.rows) == ({}, 0)


def test_loss_means_of_nothing():
    assert LossMeans().compute() == {}


@pytest.mark.parametrize("was_training", [True, False])
def test_there_is_no_dropout_meanwhile(was_training):
    model = nn.Dropout().train(was_training)

    with evaluation_mode(model):
        assert not model.training


@pytest.mark.parametrize("was_training", [True, False])
def test_the_model_gets_its_mode_back_also_after_an_error(was_training):
    model = nn.Dropout().train(was_training)

    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        raise ZeroDivisionError

    assert model.training is was_training
    assert torch.is_grad_enabled()
