"""What schedules ask of the optimizer that they stand beside, and of the run."""

import pytest

from penstock.config.errors import ConfigError
from penstock.run.requirements import require_for_training
from penstock.run.run_config import RunConfig
from tests.run.test_run_config import run_data


def with_optimizers(sparse=None, dense=None):
    data = run_data(eval_input_path="eval.parquet")
    data["train_config"]["sparse_optimizer"] = {"adagrad_optimizer": {"lr": 0.1}, **(sparse or {})}
    data["train_config"]["dense_optimizer"] = {"adam_optimizer": {"lr": 0.001}, **(dense or {})}
    return RunConfig.model_validate(data)


def told(run):
    with pytest.raises(ConfigError) as caught:
        require_for_training(run)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_minimum_above_the_base_rate_names_both_keys_and_values():
    cosine = {"cosine_annealing_learning_rate": {"T_max": 10, "min_learning_rate": 0.01}}
    part = {"regex_pattern": ".*", "sgd_optimizer": {"lr": 0.002}, **cosine}

    assert told(with_optimizers(sparse=cosine, dense=cosine | {"part_optimizers": [part]})) == {
        "train_config.dense_optimizer.cosine_annealing_learning_rate.min_learning_rate": (
            "is 0.01, above adam_optimizer.lr 0.001, from which the schedule goes down; "
            "lower one or raise the other"
        ),
        "train_config.dense_optimizer.part_optimizers[0].cosine_annealing_learning_rate.min_learning_rate": (
            "is 0.01, above sgd_optimizer.lr 0.002, from which the schedule goes down; "
            "lower one or raise the other"
        ),
    }


def test_a_base_rate_of_0_stays_0_whatever_the_minimum():
    frozen = {
        "adagrad_optimizer": {"lr": 0.0},
        "cosine_annealing_learning_rate": {"T_max": 1, "min_learning_rate": 1.0},
    }

    require_for_training(with_optimizers(sparse=frozen))


def test_a_plateau_of_what_should_get_less_says_so():
    place = "train_config.dense_optimizer.reduce_on_plateau_learning_rate"

    assert told(
        with_optimizers(dense={"reduce_on_plateau_learning_rate": {"metric": "binary_cross_entropy"}})
    ) == {f"{place}.mode": "is max, but less binary_cross_entropy is better; write mode: min"}
    require_for_training(
        with_optimizers(
            dense={"reduce_on_plateau_learning_rate": {"metric": "binary_cross_entropy", "mode": "min"}}
        )
    )


def test_a_plateau_watches_what_evaluation_gives():
    place = "train_config.dense_optimizer.reduce_on_plateau_learning_rate"

    assert told(with_optimizers(dense={"reduce_on_plateau_learning_rate": {"metric": "auk"}})) == {
        f"{place}.metric": "evaluation does not give 'auk'; did you mean 'auc'?"
    }


def test_a_warm_up_rises_and_has_steps():
    falling = {
        "exponential_decay_learning_rate": {"decay_size": 5, "warmup_learning_rate": 0.5, "warmup_size": 3}
    }
    without_steps = {"cosine_annealing_learning_rate": {"T_max": 5, "warmup_learning_rate": 0.0001}}

    assert told(with_optimizers(sparse=falling, dense=without_steps)) == {
        "train_config.sparse_optimizer.exponential_decay_learning_rate.warmup_learning_rate": (
            "is 0.5, above adagrad_optimizer.lr 0.1, to which a warm-up rises; lower one or raise the other"
        ),
        "train_config.dense_optimizer.cosine_annealing_learning_rate.warmup_learning_rate": (
            "is 0.0001, but the warm-up has no steps; set warmup_size"
        ),
    }
