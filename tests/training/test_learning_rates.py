"""Rates of optimizers: by their schedules, by hand, and by what evaluations say."""

import pytest
import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.optim.schedules import PlateauSchedule
from penstock.optim.sections.schedules import ReduceOnPlateauLR
from penstock.training.learning_rates import LearningRates
from penstock.training.progress import TrainingProgress


class Halving:
    """A rate that halves with every step."""

    def value(self, step: int, epoch: int) -> float:
        return 1.0 / 2**step


def test_rates_are_told_by_the_name_of_their_optimizer():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=99.0)
    rates = LearningRates({"sparse": (optimizer, Halving()), "dense": (optimizer, Halving())})

    assert rates.values(TrainingProgress(step=2)) == {"sparse": 0.25, "dense": 0.25}


def test_a_rate_set_by_hand_stands_above_the_schedule_and_is_saved():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=99.0)
    rates, again = (LearningRates({"dense": (optimizer, Halving())}) for _ in range(2))

    rates.set(0.3)
    again.load_state_dict(rates.state_dict())
    rates.apply(TrainingProgress(step=2))

    assert optimizer.param_groups[0]["lr"] == 0.3
    assert again.values(TrainingProgress(step=2)) == {"dense": 0.3}
    again.set(None, "dense")
    assert again.values(TrainingProgress(step=2)) == {"dense": 0.25}


def test_rates_are_set_for_optimizers_that_there_are():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=99.0)
    rates = LearningRates({"dense": (optimizer, Halving())})

    with pytest.raises(ConfigError, match="there is no optimizer named 'dens'; did you mean 'dense'"):
        rates.set(0.1, "dens")
    with pytest.raises(ConfigError, match="a learning rate is a number of at least 0, not -1"):
        rates.set(-1)


def test_plateaus_hear_evaluations_and_are_saved():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=99.0)
    section = ReduceOnPlateauLR(metric="auc", factor=0.5, patience=0)
    rates, again = (LearningRates({"dense": (optimizer, PlateauSchedule(section, 0.8))}) for _ in range(2))

    rates.observe({"auc": 0.7})
    rates.observe({"log_loss": 0.1})  # no auc: no improvement
    again.load_state_dict(rates.state_dict())

    assert rates.values(TrainingProgress()) == again.values(TrainingProgress()) == {"dense": 0.4}
