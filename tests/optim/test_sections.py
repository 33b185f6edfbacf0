"""Options of optimizers and schedules."""

import pytest
from pydantic import ValidationError

from penstock.config.check import KeyCheck
from penstock.optim.sections import DenseOptimizer, SparseOptimizer
from penstock.optim.sections.schedules import ExponentialDecayLR, ManualStepLR


def test_one_optimizer_is_required_and_a_schedule_is_not():
    assert DenseOptimizer.model_validate({"adam_optimizer": {}}).chosen("learning_rate") is None
    with pytest.raises(ValidationError, match="is required"):
        DenseOptimizer.model_validate({"constant_learning_rate": {}})


@pytest.mark.parametrize("options", [{}, {"decay_size": 0}, {"decay_size": 10, "decay_factor": 1.5}])
def test_a_decay_has_a_size_and_a_factor_up_to_one(options):
    with pytest.raises(ValidationError):
        ExponentialDecayLR.model_validate(options)


def test_a_written_schedule_has_one_rate_for_each_size():
    with pytest.raises(ValidationError, match="has 2 and learning_rates 1 values; one rate for each size"):
        ManualStepLR.model_validate({"schedule_sizes": [10, 20], "learning_rates": [0.1]})
    with pytest.raises(ValidationError, match=r"must rise; they are \[20, 10\]"):
        ManualStepLR.model_validate({"schedule_sizes": [20, 10], "learning_rates": [0.1, 0.01]})


def test_tables_cannot_have_an_optimizer_of_ones_own():
    found = KeyCheck.of(
        {"custom_optimizer": {"place": "torch.optim:NAdam", "lr": 0.1}}, SparseOptimizer
    ).problems

    assert [(problem.path, problem.message) for problem in found] == [
        (
            ("custom_optimizer",),
            (
                "cannot be used: fused kernels update tables, which nothing in Python can replace; "
                "it is for dense_optimizer"
            ),
        )
    ]


@pytest.mark.parametrize(
    ("optimizer", "option"),
    [
        ("sgd_optimizer", "momentum"),
        ("sgd_optimizer", "dampening"),
        ("rmsprop_optimizer", "alpha"),
        ("adadelta_optimizer", "rho"),
        ("adam_optimizer", "beta2"),
    ],
)
def test_what_is_kept_of_a_running_mean_is_less_than_all(optimizer, option):
    with pytest.raises(ValidationError, match="less than 1"):
        DenseOptimizer.model_validate({optimizer: {option: 1.0}})


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [("", "is empty; it must match the whole name of a parameter"), ("deep.(", "no regular expression")],
)
def test_what_is_no_pattern_is_refused(pattern, problem):
    part = {"regex_pattern": pattern, "adam_optimizer": {}}
    with pytest.raises(ValidationError, match=problem):
        DenseOptimizer.model_validate({"adam_optimizer": {}, "part_optimizers": [part]})


@pytest.mark.parametrize("key", ["lr", "weight_decay"])
@pytest.mark.parametrize("optimizer", [DenseOptimizer, SparseOptimizer])
def test_a_number_that_float32_cannot_hold_is_refused(optimizer, key):
    with pytest.raises(ValidationError, match=r"is 1e\+39, which is infinite in the float32 of parameters"):
        optimizer.model_validate({"adam_optimizer": {key: 1e39}})


@pytest.mark.parametrize("optimizer", ["adam_optimizer", "adamw_optimizer"])
def test_a_rate_that_overflows_at_the_first_step_of_adam_is_refused(optimizer):
    told = r"lr is 1e\+38, which is infinite in the float32 of parameters when divided by 1 - beta1 \(0.1\)"
    with pytest.raises(ValidationError, match=rf"{told}; the largest is 3.403e\+37"):
        DenseOptimizer.model_validate({optimizer: {"lr": 1e38}})


def test_nesterov_without_momentum_is_refused():
    with pytest.raises(ValidationError, match="needs a momentum above 0 and no dampening"):
        DenseOptimizer.model_validate({"sgd_optimizer": {"nesterov": True, "dampening": 0.5}})
