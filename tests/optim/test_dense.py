"""Dense optimizers equal torch's own."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.optim.dense import dense_optimizer
from penstock.optim.rates import set_learning_rate
from penstock.optim.sections.dense import DenseOptimizer


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
        (
            {"sgd_optimizer": {"momentum": 0.5, "dampening": 0.2, "weight_decay": 0.1}},
            lambda named: torch.optim.SGD(
                [named[0][1]], lr=0.002, momentum=0.5, dampening=0.2, weight_decay=0.1
            ),
        ),
        (
            {"adamw_optimizer": {"beta2": 0.9, "weight_decay": 0.1}},
            lambda named: torch.optim.AdamW([named[0][1]], lr=0.002, betas=(0.9, 0.9), weight_decay=0.1),
        ),
        (
            {"adadelta_optimizer": {"lr": 0.1, "rho": 0.8}},
            lambda named: torch.optim.Adadelta([named[0][1]], lr=0.1, rho=0.8, eps=1e-6),
        ),
        (
            {"rmsprop_optimizer": {"lr": 0.1, "alpha": 0.8, "weight_decay": 0.1}},
            lambda named: torch.optim.RMSprop([named[0][1]], lr=0.1, alpha=0.8, weight_decay=0.1),
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


def test_every_dense_optimizer_of_the_run_file_has_a_builder_and_a_rate_of_2_in_a_thousand():
    for name in set(DenseOptimizer.one_of["optimizer"]) - {"custom_optimizer"}:
        optimizer = dense_optimizer(section(**{name: {}}), [("weight", torch.nn.Parameter(torch.ones(1)))])

        assert [group["lr"] for group in optimizer.param_groups] == [0.002]


def test_a_model_without_dense_parameters_has_nothing_to_move():
    optimizer = dense_optimizer(section(adam_optimizer={}), [])

    optimizer.zero_grad()
    optimizer.step()

    assert optimizer.state_dict() == {"state": {}}


@pytest.mark.parametrize(("optimizer", "rate"), [("adam_optimizer", 1e38), ("sgd_optimizer", 1e39)])
def test_a_scheduled_rate_that_overflows_is_refused_in_one_line(optimizer, rate):
    weight = torch.nn.Parameter(torch.ones(1))
    dense = dense_optimizer(DenseOptimizer.model_validate({optimizer: {}}), [("weight", weight)])

    with pytest.raises(ConfigError, match=r"a learning rate cannot be used: lr is 1e\+3., which is infinite"):
        set_learning_rate(dense, rate)
