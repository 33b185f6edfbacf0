"""The evaluation loop: every row once, means by rows, and the model as it was."""

from dataclasses import dataclass, field

import pytest
import torch
from torch import nn

from penstock.loops.evaluate import LossMeans, evaluate, evaluation_mode


@dataclass(frozen=True)
class LabelledBatch:
    """Labels alone."""

    labels: dict[str, torch.Tensor]

    @property
    def num_rows(self) -> int:
        return len(self.labels["click"])


@dataclass
class Recorder:
    """A metric that keeps what it was given."""

    seen: list[tuple[float, float]] = field(default_factory=list)

    def update(self, predictions, labels):
        self.seen += zip(predictions["probs"].tolist(), labels["click"].tolist(), strict=True)

    def compute(self):
        return float(len(self.seen))


class Doubler:
    """Predicts twice the label; its loss is the mean of the labels."""

    def predict(self, batch):
        assert not torch.is_grad_enabled()
        return {"probs": batch.labels["click"] * 2}

    def loss(self, predictions, batch):
        return {"mean_label": batch.labels["click"].mean()}


def batch_of(*labels: float) -> LabelledBatch:
    return LabelledBatch({"click": torch.tensor(labels)})


def test_every_row_reaches_the_metrics_once_and_in_order():
    recorder, told = Recorder(), []

    found = evaluate(
        nn.Linear(1, 1), Doubler(), [batch_of(1.0, 2.0), batch_of(3.0)], {"count": recorder}, told.append
    )

    assert recorder.seen == [(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]
    assert found.metrics == {"count": 3.0}
    assert found.rows == 3
    assert [batch.num_rows for batch in told] == [2, 1]


def test_the_mean_of_a_loss_is_by_rows_not_by_batches():
    found = evaluate(nn.Linear(1, 1), Doubler(), [batch_of(1.0, 1.0, 1.0), batch_of(5.0)], {})

    assert found.losses == {"mean_label": pytest.approx(2.0)}


def test_no_batch_gives_no_loss():
    found = evaluate(nn.Linear(1, 1), Doubler(), [], {})

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
