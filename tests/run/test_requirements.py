"""What commands need from a run file."""

import pytest

from penstock.config.errors import ConfigError
from penstock.run.requirements import (
    model_section,
    require_for_evaluation,
    require_for_prediction,
    require_for_training,
    train_section,
)
from penstock.run.run_config import RunConfig
from tests.run.test_run_config import deepfm, run_data


def paths_of(error):
    return [problem.path for problem in error.value.problems]


def test_a_whole_run_file_can_be_trained():
    run = RunConfig.model_validate(run_data())

    require_for_training(run)

    assert model_section(run) is run.model
    assert train_section(run) is run.train_config


def test_what_is_not_available_yet_is_refused_with_its_path():
    data = run_data()
    data["export_config"] = {"mixed_precision": "BF16"}

    with pytest.raises(ConfigError, match=r"export_config\.mixed_precision: .* is not available yet"):
        require_for_training(RunConfig.model_validate(data))


def test_a_weight_decay_that_does_nothing_is_told_once():
    data = run_data()
    data["train_config"]["sparse_optimizer"] = {"rowwise_adagrad_optimizer": {"weight_decay": 0.1}}

    with pytest.raises(ConfigError) as error:
        require_for_training(RunConfig.model_validate(data))

    assert paths_of(error) == ["train_config.sparse_optimizer.rowwise_adagrad_optimizer.weight_decay"]


def test_training_says_everything_that_is_missing():
    with pytest.raises(ConfigError) as error:
        require_for_training(RunConfig.model_validate({}))

    assert paths_of(error) == [
        "train_input_path",
        "model_dir",
        "train_config",
        "feature_configs",
        "model_config",
        "data_config.label_fields",
    ]
    assert "train_input_path: is required by this command; set it, or give --train_input_path" in str(
        error.value
    )


def test_training_needs_a_loss():
    with pytest.raises(ConfigError, match=r"model_config\.losses: is empty"):
        require_for_training(RunConfig.model_validate(run_data(model_config=deepfm(losses=[]))))


def test_evaluation_needs_data_to_evaluate_on():
    with pytest.raises(ConfigError, match="eval_input_path: is required"):
        require_for_evaluation(RunConfig.model_validate(run_data()))


def test_prediction_needs_a_model_and_where_it_lies():
    with pytest.raises(ConfigError) as error:
        require_for_prediction(RunConfig.model_validate({}))

    assert paths_of(error) == ["model_dir", "feature_configs", "model_config"]


def test_the_best_checkpoint_is_chosen_by_a_metric_that_there_is():
    run = RunConfig.model_validate(
        run_data(export_config={"exporter_type": "best", "best_exporter_metric": "auk"})
    )

    with pytest.raises(ConfigError) as error:
        require_for_training(run)

    assert str(error.value) == (
        "export_config.best_exporter_metric: evaluation does not give 'auk'; did you mean 'auc'?"
    )


def with_early_stopping(**options):
    data = run_data(eval_input_path="eval.parquet")
    data["train_config"]["early_stopping"] = {"metric": "auc", **options}
    return data


def test_early_stopping_watches_a_metric_that_there_is():
    require_for_training(RunConfig.model_validate(with_early_stopping()))

    with pytest.raises(ConfigError) as error:
        require_for_training(RunConfig.model_validate(with_early_stopping(metric="ndcg")))

    assert str(error.value) == (
        "train_config.early_stopping.metric: evaluation does not give 'ndcg'; known: auc, binary_cross_entropy"
    )


def test_what_is_best_near_1_decides_nothing():
    data = with_early_stopping(metric="calibration") | {
        "export_config": {"best_exporter_metric": "calibration"}
    }
    data["model_config"]["metrics"] = [{"calibration": {}}]

    with pytest.raises(ConfigError) as error:
        require_for_training(RunConfig.model_validate(data))

    assert [problem.path for problem in error.value.problems] == [
        "export_config.best_exporter_metric",
        "train_config.early_stopping.metric",
    ]


def test_early_stopping_needs_evaluations():
    with pytest.raises(ConfigError, match=r"early_stopping: needs eval_input_path"):
        require_for_training(RunConfig.model_validate(with_early_stopping() | {"eval_input_path": ""}))


def test_a_scaler_needs_fp16():
    data = run_data()
    data["train_config"] |= {"mixed_precision": "FP16", "grad_scaler": {}}
    require_for_training(RunConfig.model_validate(data))
    data["train_config"]["mixed_precision"] = "BF16"

    with pytest.raises(
        ConfigError, match=r"grad_scaler: scales losses of FP16 alone; set mixed_precision: FP16"
    ):
        require_for_training(RunConfig.model_validate(data))


def two_towers(**keys):
    towers = [
        {
            "tower_name": name,
            "label_name": "click",
            "metrics": [{"auc": {}}],
            "losses": [{"binary_cross_entropy": {}}],
        }
        for name in ("click", "buy")
    ]
    groups = [{"group_name": "all", "feature_names": ["user_id"]}]
    model = {"feature_groups": groups, "simple_multi_task": {"task_towers": towers}}
    return RunConfig.model_validate(run_data(eval_input_path="eval.parquet", model_config=model, **keys))


def test_towers_without_a_metric_that_picks_the_best_are_told_before_training(caplog):
    require_for_training(two_towers())

    (remark,) = caplog.messages
    assert remark == (
        "no checkpoint will be the best: export_config.best_exporter_metric is auc where it is not written, and "
        "evaluation does not give 'auc'; of its towers it gives auc_click, auc_buy"
    )


def test_towers_with_a_metric_that_picks_the_best_have_nothing_to_be_told(caplog):
    require_for_training(two_towers(export_config={"best_exporter_metric": "auc_buy"}))

    assert caplog.messages == []


def test_results_are_named_by_section_and_tower():
    tower = {
        "tower_name": "buy",
        "label_name": "click",
        "metrics": [{"auc": {}}],
        "losses": [{"binary_cross_entropy": {}}],
    }
    model = {"feature_groups": [], "simple_multi_task": {"task_towers": [tower]}}
    run = RunConfig.model_validate(run_data(model_config=model))

    assert run.model.result_names() == ["auc_buy", "binary_cross_entropy_buy"]


def test_a_model_of_towers_needs_one():
    model = {"feature_groups": [{"group_name": "all", "feature_names": ["user_id"]}], "simple_multi_task": {}}

    with pytest.raises(ConfigError) as error:
        require_for_training(RunConfig.model_validate(run_data(model_config=model)))

    assert str(error.value) == (
        "model_config.simple_multi_task.task_towers: is empty; name at least one task"
    )


def unused(**settings):
    data = run_data()
    data["train_config"] |= settings
    train = RunConfig.model_validate(data).train_config
    return {
        problem.path.removeprefix("train_config."): problem.message for problem in train.unused_settings()
    }


def test_nothing_is_said_of_settings_that_do_something():
    assert unused(grad_clipping={"clipping_type": "norm", "max_gradient": 2.0}) == {}
    assert unused(sparse_optimizer={"sgd_optimizer": {"gradient_clipping": True, "max_gradient": 2.0}}) == {}
    assert unused(grad_clipping={"clipping_type": "none", "max_gradient": 2.0}) == {}  # switched off by name


@pytest.mark.parametrize(
    ("settings", "path", "message"),
    [
        (
            {"fine_tune_ckpt_param_map": "names.txt"},
            "fine_tune_ckpt_param_map",
            "names parameters of train_config.fine_tune_checkpoint, which is not set",
        ),
        (
            {"histogram_steps": 10},
            "histogram_steps",
            "writes nothing without parameter or gradient in train_config.tensorboard_summaries",
        ),
        (
            {"grad_clipping": {"max_gradient": 2.0}},
            "grad_clipping.clipping_type",
            "is none where it is not written, so that nothing is clipped; write norm or value",
        ),
        (
            {"sparse_optimizer": {"sgd_optimizer": {"max_gradient": 2.0}}},
            "sparse_optimizer.sgd_optimizer.max_gradient",
            "bounds nothing without gradient_clipping: true",
        ),
    ],
)
def test_a_setting_that_waits_for_another_is_told(settings, path, message):
    assert unused(**settings) == {path: message}


def test_weights_of_a_tower_wait_for_what_they_weigh():
    tower = {
        "tower_name": "buy",
        "label_name": "click",
        "losses": [{"binary_cross_entropy": {}}],
        "pareto_min_loss_weight": 0.3,
        "out_task_space_weight": 0.5,
    }
    groups = [{"group_name": "all", "feature_names": ["user_id"]}]
    model = {"feature_groups": groups, "simple_multi_task": {"task_towers": [tower]}}
    run = RunConfig.model_validate(run_data(model_config=model))

    place = "model_config.simple_multi_task.task_towers[0]"
    assert {problem.path: problem.message for problem in run.model.unused_settings()} == {
        f"{place}.pareto_min_loss_weight": (
            "is for weights that are found; set model_config.use_pareto_loss_weight: true, or leave it out"
        ),
        f"{place}.out_task_space_weight": (
            "needs task_space_indicator_label, which tells the rows of the space"
        ),
    }


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

    assert RunConfig.model_validate(data).train_config.evaluates_on_the_way() is is_so


def with_optimizers(sparse=None, dense=None):
    data = run_data(eval_input_path="eval.parquet")
    data["train_config"]["sparse_optimizer"] = {"adagrad_optimizer": {"lr": 0.1}, **(sparse or {})}
    data["train_config"]["dense_optimizer"] = {"adam_optimizer": {"lr": 0.001}, **(dense or {})}
    return RunConfig.model_validate(data)


def problems(run):
    with pytest.raises(ConfigError) as caught:
        require_for_training(run)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_minimum_above_the_base_rate_names_both_keys_and_values():
    cosine = {"cosine_annealing_learning_rate": {"T_max": 10, "min_learning_rate": 0.01}}
    part = {"regex_pattern": ".*", "sgd_optimizer": {"lr": 0.002}, **cosine}

    assert problems(with_optimizers(sparse=cosine, dense=cosine | {"part_optimizers": [part]})) == {
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

    assert problems(
        with_optimizers(dense={"reduce_on_plateau_learning_rate": {"metric": "binary_cross_entropy"}})
    ) == {f"{place}.mode": "is max, but less binary_cross_entropy is better; write mode: min"}
    require_for_training(
        with_optimizers(
            dense={"reduce_on_plateau_learning_rate": {"metric": "binary_cross_entropy", "mode": "min"}}
        )
    )


def test_a_plateau_watches_what_evaluation_gives():
    place = "train_config.dense_optimizer.reduce_on_plateau_learning_rate"

    assert problems(with_optimizers(dense={"reduce_on_plateau_learning_rate": {"metric": "auk"}})) == {
        f"{place}.metric": "evaluation does not give 'auk'; did you mean 'auc'?"
    }


def test_a_warm_up_rises_and_has_steps():
    falling = {
        "exponential_decay_learning_rate": {"decay_size": 5, "warmup_learning_rate": 0.5, "warmup_size": 3}
    }
    without_steps = {"cosine_annealing_learning_rate": {"T_max": 5, "warmup_learning_rate": 0.0001}}

    assert problems(with_optimizers(sparse=falling, dense=without_steps)) == {
        "train_config.sparse_optimizer.exponential_decay_learning_rate.warmup_learning_rate": (
            "is 0.5, above adagrad_optimizer.lr 0.1, to which a warm-up rises; lower one or raise the other"
        ),
        "train_config.dense_optimizer.cosine_annealing_learning_rate.warmup_learning_rate": (
            "is 0.0001, but the warm-up has no steps; set warmup_size"
        ),
    }
