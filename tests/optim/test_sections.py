"""Options of optimizers and schedules."""

import pytest
from pydantic import ValidationError

from penstock.config.load import KeyCheck
from penstock.optim.sections import DenseOptimizer, SparseOptimizer
from penstock.optim.sections.schedules import ExponentialDecayLR, ManualStepLR


def test_tables_cannot_have_a_custom_optimizer():
    written = {"custom_optimizer": {"import_path": "torch.optim:NAdam", "lr": 0.1}}
    keys = KeyCheck()
    keys.section(written, SparseOptimizer)
    [problem] = keys.problems

    assert problem.path == ("custom_optimizer",)
    assert problem.message == (
        "cannot be used: fused kernels update tables, which nothing in Python can replace; it is for dense_optimizer"
    )


ADAM = {"adam_optimizer": {}}
OVERFLOW = "which is infinite in the float32 of parameters"


@pytest.mark.parametrize(
    ("section", "options", "problem"),
    [
        (DenseOptimizer, {"constant_learning_rate": {}}, "is required"),
        (ExponentialDecayLR, {}, "Field required"),
        (
            ManualStepLR,
            {"schedule_sizes": [10, 20], "learning_rates": [0.1]},
            "has 2 and learning_rates 1 values; one rate for each size",
        ),
        (
            ManualStepLR,
            {"schedule_sizes": [20, 10], "learning_rates": [0.1, 0.01]},
            r"must rise; they are \[20, 10\]",
        ),
        (DenseOptimizer, {"sgd_optimizer": {"momentum": 1.0}}, "less than 1"),
        (DenseOptimizer, {"adam_optimizer": {"lr": 1e39}}, rf"is 1e\+39, {OVERFLOW}"),
        (SparseOptimizer, {"adam_optimizer": {"weight_decay": 1e39}}, rf"is 1e\+39, {OVERFLOW}"),
        (
            DenseOptimizer,
            {"adamw_optimizer": {"lr": 1e38}},
            rf"lr is 1e\+38, {OVERFLOW} when divided by 1 - beta1 \(0.1\); the largest is 3.403e\+37",
        ),
        (
            DenseOptimizer,
            {"sgd_optimizer": {"nesterov": True, "dampening": 0.5}},
            "needs a momentum above 0 and no dampening",
        ),
        (
            DenseOptimizer,
            {**ADAM, "part_optimizers": [{"regex_pattern": "", **ADAM}]},
            "is empty; it must match the whole name of a parameter",
        ),
        (
            DenseOptimizer,
            {**ADAM, "part_optimizers": [{"regex_pattern": "deep.(", **ADAM}]},
            "no regular expression",
        ),
    ],
)
def test_options_that_cannot_be_used_are_refused(section, options, problem):
    with pytest.raises(ValidationError, match=problem):
        section.model_validate(options)
