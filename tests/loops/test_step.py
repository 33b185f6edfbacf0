"""One training step: the rates of this step, then forward, backward, update."""

import pytest
import torch
from torch import nn

from penstock.loops.progress import TrainingProgress
from penstock.loops.step import LearningRates, TrainStep


class Halving:
    """A rate that halves with every step."""

    def value(self, step: int, epoch: int) -> float:
        return 1.0 / 2**step


class Line(nn.Module):
    """Loss w * x for one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(3.0))

    def forward(self, batch):
        return self.weight * batch, ({}, {}, batch)


def test_each_step_uses_the_rate_of_the_steps_before_it():
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), lr=99.0)
    step = TrainStep(model, optimizer, LearningRates({"dense": (optimizer, Halving())}), torch.device("cpu"))

    losses = [step(torch.tensor(1.0), TrainingProgress(step=done)).loss for done in range(3)]

    assert losses == [3.0, 2.0, 1.5]  # the weight fell by 1, then by 1/2
    assert model.weight.item() == pytest.approx(1.25)


def test_rates_are_told_by_the_name_of_their_optimizer():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=99.0)
    rates = LearningRates({"sparse": (optimizer, Halving()), "dense": (optimizer, Halving())})

    assert rates.values(TrainingProgress(step=2)) == {"sparse": 0.25, "dense": 0.25}
