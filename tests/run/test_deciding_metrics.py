"""Results of evaluation that decide something."""

import pytest

from penstock.config.errors import ConfigError
from penstock.run.requirements import evaluates_on_the_way, not_given, require_for_training, wrong_direction
from penstock.run.run_config import RunConfig
from tests.run.test_run_config import run_data


def told(train=None, **sections):
    """The problems of a run that evaluates, by path."""
    data = run_data(eval_input_path="eval.parquet", **sections)
    data["train_config"] |= train or {}
    with pytest.raises(ConfigError) as caught:
        require_for_training(RunConfig.model_validate(data))
    return {problem.path: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("metric", "mode", "problem"),
    [
        ("auc", "min", "is min, but more auc is better"),
        ("binary_cross_entropy", "max", "is max, but less binary_cross_entropy is better"),
    ],
)
def test_an_early_stop_in_the_wrong_direction_is_refused(metric, mode, problem):
    assert told({"early_stopping": {"metric": metric, "mode": mode}}) == {
        "train_config.early_stopping.mode": problem
    }


def test_the_best_in_the_wrong_direction_is_refused():
    assert told(export_config={"metric_larger_is_better": False}) == {
        "export_config.metric_larger_is_better": "is false, but more auc is better"
    }


def test_a_metric_of_ones_own_may_go_either_way():
    assert wrong_direction("brier", larger=True, losses=[]) is None
    assert wrong_direction("brier", larger=False, losses=[]) is None
    assert wrong_direction("log_loss_buy", larger=True, losses=[]) == "less log_loss_buy is better"


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("name", ["calibration_error", "auc_gap", "log_loss_gain"])
def test_a_metric_of_ones_own_may_begin_like_another(name, mode):
    data = run_data(
        eval_input_path="eval.parquet",
        export_config={"best_exporter_metric": name, "metric_larger_is_better": mode == "max"},
    )
    data["model_config"]["metrics"] = [{"custom_metric": {"place": "own:Metric", "name": name}}]
    plateau = {"reduce_on_plateau_learning_rate": {"metric": name, "mode": mode}}
    data["train_config"] |= {
        "eval_steps": 1,
        "early_stopping": {"metric": name, "mode": mode, "min_delta": 2.0},
        "dense_optimizer": {"adam_optimizer": {}, **plateau},
    }

    require_for_training(RunConfig.model_validate(data))


def test_an_improvement_that_is_never_reached_is_refused():
    assert told({"early_stopping": {"metric": "auc", "min_delta": 1.0}}) == {
        "train_config.early_stopping.min_delta": (
            "is 1.0, but auc is between 0 and 1 and never gets so much better"
        )
    }


def test_what_learns_from_evaluations_needs_some_before_the_end():
    none_before = "learns from evaluations, which come only after the end; set train_config.eval_steps"

    assert told({"early_stopping": {"metric": "auc"}, "save_checkpoints_steps": 0}) == {
        "train_config.early_stopping": none_before
    }


@pytest.mark.parametrize(
    ("settings", "is_so"),
    [
        ({"num_epochs": 1}, True),  # an epoch may have more than 1,000 steps
        ({"num_steps": 999}, False),
        ({"num_steps": 1000}, True),
        ({"num_steps": 10, "eval_steps": 5}, True),
        ({"num_steps": 10, "eval_steps": 11}, False),
        ({"num_epochs": 2, "save_checkpoints_steps": 0}, False),
        ({"num_epochs": 2, "save_checkpoints_steps": 0, "save_checkpoints_epochs": 1}, True),
        ({"num_epochs": 1, "save_checkpoints_steps": 0, "save_checkpoints_epochs": 2}, False),
        ({"num_epochs": 1, "save_checkpoints_steps": 0, "eval_steps": 3}, True),
    ],
)
def test_evaluations_on_the_way(settings, is_so):
    data = run_data()
    data["train_config"] = {
        key: value
        for key, value in data["train_config"].items()
        if key not in ("num_steps", "num_epochs", "save_checkpoints_steps")
    } | settings

    assert evaluates_on_the_way(RunConfig.model_validate(data).train_config) is is_so


def test_a_name_without_its_tower_is_told_with_those_of_all_towers():
    assert not_given("auc", ["auc_click", "auc_buy", "l2_loss_watch"]) == (
        "evaluation does not give 'auc'; of its towers it gives auc_click, auc_buy"
    )
