"""Fused optimizers of embedding tables, through a sharded model of one process."""

import math

import pytest

from penstock.config.errors import ConfigError
from penstock.optim.rates import set_learning_rate
from penstock.optim.sections import SparseOptimizer
from penstock.optim.sparse import sparse_optimizer


def section(**optimizer):
    return SparseOptimizer.model_validate(optimizer)


def trained(table, steps, *, schedule=None, **optimizer):
    """The first two numbers of a row of ones after steps with a gradient of 1, 3, 0, 0."""
    table.shard(sparse_optimizer(section(**optimizer)))
    for step in range(steps):
        if schedule is not None:
            set_learning_rate(table.module.fused_optimizer, schedule[step])
        table.step([1.0, 3.0, 0.0, 0.0])
    return table.row()[:2]


def test_sgd_moves_by_the_gradient(one_table):
    assert trained(one_table, 2, sgd_optimizer={"lr": 0.1}) == pytest.approx([0.8, 0.4])


def test_adagrad_has_an_accumulator_for_each_number(one_table):
    first, second = 1.0, 1 / math.sqrt(2)

    assert trained(one_table, 2, adagrad_optimizer={"lr": 0.1}) == pytest.approx(
        [1 - 0.1 * (first + second)] * 2
    )


def test_rowwise_adagrad_has_one_for_each_row(one_table):
    mean_square = (1 + 9) / 4

    assert trained(one_table, 1, rowwise_adagrad_optimizer={"lr": 0.1}) == pytest.approx(
        [1 - 0.1 / math.sqrt(mean_square), 1 - 0.3 / math.sqrt(mean_square)]
    )


@pytest.mark.parametrize("name", ["sgd_optimizer", "adagrad_optimizer", "rowwise_adagrad_optimizer"])
def test_gradients_are_clipped_in_the_kernel(one_table, name):
    clipped = {"lr": 0.1, "gradient_clipping": True, "max_gradient": 0.5}
    first, second = trained(one_table, 1, **{name: clipped})

    assert first == second < 1


def test_a_new_learning_rate_is_in_force_at_the_very_next_step(one_table):
    assert trained(one_table, 3, schedule=[0.1, 0.01, 0.0], sgd_optimizer={"lr": 5.0})[0] == pytest.approx(
        1 - 0.11
    )


def test_a_rate_of_zero_in_a_schedule_is_not_the_end(one_table):
    assert trained(one_table, 2, schedule=[0.0, 0.1], sgd_optimizer={"lr": 5.0})[0] == pytest.approx(0.9)


def test_a_frozen_table_does_not_move_whatever_the_schedule_says(one_table):
    one_table.freeze()

    assert trained(one_table, 2, schedule=[0.1, 0.2], adagrad_optimizer={"lr": 1.0}) == [1.0, 1.0]


def test_settings_are_a_new_dictionary_each_time():
    adagrad = section(adagrad_optimizer={"lr": 0.1})

    assert sparse_optimizer(adagrad)[1] == {"lr": 0.1}
    assert sparse_optimizer(adagrad)[1] is not sparse_optimizer(adagrad)[1]


REFUSED = {
    "adam_optimizer": (
        {"lr": 0.1},
        (
            ": has no CPU kernel and is not available yet; "
            "available: sgd_optimizer, adagrad_optimizer, rowwise_adagrad_optimizer"
        ),
    ),
    "adagrad_optimizer": (
        {"lr": 0.1, "initial_accumulator_value": 0.5},
        ".initial_accumulator_value: is 0.5; the fused kernel starts at 0; not available yet",
    ),
    "rowwise_adagrad_optimizer": (
        {"lr": 0.1, "weight_decay": 0.5, "weight_decay_mode": "L2"},
        ".weight_decay: is 0.5; the CPU kernel ignores it in lookups without weights",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_kernels_cannot_do_is_refused_by_name(name):
    options, problem = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        sparse_optimizer(section(**{name: options}))

    assert str(caught.value) == f"train_config.sparse_optimizer.{name}{problem}"
