"""One training step and its learning rates; how far a run is, and what is due when."""

import pytest
import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.training.events import TrainingProgress
from penstock.training.step import LearningRates, TrainStep


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


class Normalised(nn.Module):
    """Batch normalisation, then a mean: the running statistics move in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(1)

    def forward(self, batch):
        return self.norm(batch).mean() + batch.mean(), ({}, {"probs": batch}, batch)


def test_a_step_whose_loss_is_not_finite_is_not_taken():
    model = Normalised()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = TrainStep(model, optimizer, LearningRates({"dense": (optimizer, Halving())}), torch.device("cpu"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    outcome = step(torch.tensor([[1.0], [float("nan")]]), TrainingProgress())

    assert not outcome.taken
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert step(torch.tensor([[1.0], [2.0]]), TrainingProgress()).taken
    assert not torch.equal(model.norm.running_mean, before["norm.running_mean"])


def sgd():
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=99.0)


def test_a_rate_set_by_hand_stands_above_the_schedule_and_is_saved():
    optimizer = sgd()
    rates, again = (LearningRates({"dense": (optimizer, Halving())}) for _ in range(2))

    rates.set(0.3)
    again.load_state_dict(rates.state_dict())
    rates.apply(TrainingProgress(step=2))

    assert optimizer.param_groups[0]["lr"] == 0.3
    assert again.values(TrainingProgress(step=2)) == {"dense": 0.3}
    again.set(None, "dense")
    assert again.values(TrainingProgress(step=2)) == {"dense": 0.25}


def test_rates_are_set_for_optimizers_that_there_are():
    optimizer = sgd()
    rates = LearningRates({"dense": (optimizer, Halving())})

    with pytest.raises(ConfigError, match="there is no optimizer named 'dens'; did you mean 'dense'"):
        rates.set(0.1, "dens")
    with pytest.raises(ConfigError, match="a learning rate is a number of at least 0, not -1"):
        rates.set(-1)
