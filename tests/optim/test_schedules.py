"""Learning rates by their formulas."""

import pytest

from penstock.config.errors import ConfigError
from penstock.optim.schedules import build_schedule, preview_schedule
from penstock.optim.sections import (
    ConstantLR,
    CosineAnnealingLR,
    DenseOptimizer,
    ExponentialDecayLR,
    SparseOptimizer,
)


def test_the_example_of_exponential_decay_in_stairs():
    section = ExponentialDecayLR(decay_size=2, decay_factor=0.5)

    assert preview_schedule(section, lr=0.01, steps=4) == [0.01, 0.01, 0.005, 0.005, 0.0025]


def test_without_stairs_it_decays_at_every_step():
    section = ExponentialDecayLR(decay_size=2, decay_factor=0.25, staircase=False)

    assert preview_schedule(section, lr=1.0, steps=3) == pytest.approx([1, 0.5, 0.25, 0.125], abs=1e-15)


def test_warm_up_is_a_line_and_decay_counts_from_its_end():
    section = ExponentialDecayLR(decay_size=1, decay_factor=0.5, warmup_size=4, warmup_learning_rate=0.2)

    assert preview_schedule(section, lr=1.0, steps=6) == pytest.approx(
        [0.2, 0.4, 0.6, 0.8, 1.0, 0.5, 0.25], abs=1e-15
    )


def test_it_never_falls_under_the_minimum():
    section = ExponentialDecayLR(decay_size=1, decay_factor=0.1, min_learning_rate=0.05)

    assert preview_schedule(section, lr=1.0, steps=3) == pytest.approx([1.0, 0.1, 0.05, 0.05], abs=1e-15)


def test_a_schedule_is_a_function_of_steps_or_of_epochs():
    decay = {"decay_size": 1, "decay_factor": 0.5}
    by_step, by_epoch = (
        build_schedule(
            SparseOptimizer.model_validate(
                {
                    "adagrad_optimizer": {"lr": 1.0},
                    "exponential_decay_learning_rate": {**decay, "by_epoch": by_epoch},
                }
            )
        )
        for by_epoch in (False, True)
    )

    assert by_step.value(step=3, epoch=1) == 0.125
    assert by_epoch.value(step=3, epoch=1) == 0.5


def test_a_base_of_zero_stays_zero_whatever_the_minimum():
    section = ExponentialDecayLR(decay_size=1, warmup_size=2, warmup_learning_rate=0.1, min_learning_rate=0.1)

    assert preview_schedule(section, lr=0.0, steps=3) == [0, 0, 0, 0]


def test_no_schedule_is_a_constant_one():
    named = DenseOptimizer.model_validate({"adam_optimizer": {"lr": 0.3}, "constant_learning_rate": {}})
    absent = DenseOptimizer.model_validate({"adam_optimizer": {"lr": 0.3}})

    assert build_schedule(named).value(1000, 10) == build_schedule(absent).value(1000, 10) == 0.3
    assert preview_schedule(ConstantLR(), 0.3, 1) == [0.3, 0.3]


def test_a_schedule_without_a_builder_says_so():
    with pytest.raises(ConfigError, match="CosineAnnealingLR is not available yet; available: ConstantLR"):
        preview_schedule(CosineAnnealingLR(T_max=4), lr=1.0, steps=2)


def test_a_schedule_can_be_written_as_in_a_run_file():
    decay = {"exponential_decay_learning_rate": {"decay_size": 1, "decay_factor": 0.5}}

    assert preview_schedule(decay, 0.8, 3) == [0.8, 0.4, 0.2, 0.1]
    assert preview_schedule({}, 0.8, 1) == [0.8, 0.8]


def test_a_schedule_that_is_written_wrong_says_where():
    with pytest.raises(ConfigError, match=r"decay_factr: .*did you mean 'decay_factor'\?"):
        preview_schedule({"exponential_decay_learning_rate": {"decay_size": 1, "decay_factr": 0.5}}, 0.8, 3)
