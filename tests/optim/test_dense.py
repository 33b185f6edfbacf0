"""Dense optimizers equal torch's own."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.optim.dense import dense_optimizer
from penstock.optim.rates import set_learning_rate
from penstock.optim.sections import DenseOptimizer


def section(**optimizer):
    return DenseOptimizer.model_validate(optimizer)


def trained(make, rates=(None, None, None)):
    """A weight of 1 after steps with gradients 1, 2, 3."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = make([("weight", weight)])
    for gradient, rate in enumerate(rates, start=1):
        if rate is not None:
            set_learning_rate(optimizer, rate)
        weight.grad = torch.full((1,), float(gradient))
        optimizer.step()
    return weight.item()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"adam_optimizer": {"lr": 0.1, "beta1": 0.8, "amsgrad": True}},
            lambda named: torch.optim.Adam([named[0][1]], lr=0.1, betas=(0.8, 0.999), amsgrad=True),
        ),
        (
            {"adagrad_optimizer": {"lr": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.1}},
            lambda named: torch.optim.Adagrad(
                [named[0][1]], lr=0.1, initial_accumulator_value=0.5, weight_decay=0.1
            ),
        ),
        (
            {"sgd_optimizer": {"lr": 0.1, "nesterov": True}},
            lambda named: torch.optim.SGD([named[0][1]], lr=0.1, momentum=0.9, nesterov=True),
        ),
    ],
)
def test_it_is_the_optimizer_of_torch_with_these_options(options, expected):
    assert trained(lambda named: dense_optimizer(section(**options), named)) == trained(expected)


def test_a_new_learning_rate_is_in_force_at_the_very_next_step():
    plain_sgd = section(sgd_optimizer={"lr": 5.0, "momentum": 0.0})

    assert trained(lambda named: dense_optimizer(plain_sgd, named), rates=(0.1, 0.01, 0.0)) == pytest.approx(
        0.88
    )


def test_state_is_saved_by_parameter_name():
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = dense_optimizer(section(adagrad_optimizer={"lr": 0.1}), [("deep.weight", weight)])

    assert list(optimizer.state_dict()["state"]) == ["deep.weight"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"adamw_optimizer": {}},
            "train_config.dense_optimizer.adamw_optimizer: not available yet; available: sgd_",
        ),
        ({"adam_optimizer": {}, "ema": {}}, "train_config.dense_optimizer.ema: not available yet"),
    ],
)
def test_what_is_not_there_yet_says_so(options, problem):
    with pytest.raises(ConfigError) as caught:
        dense_optimizer(section(**options), [])

    assert str(caught.value).startswith(problem)
