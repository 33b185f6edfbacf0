"""What commands need from a run file."""

import pytest

from penstock.config.errors import ConfigError
from penstock.run.requirements import (
    model_section,
    require_for_evaluation,
    require_for_prediction,
    require_for_training,
    result_names,
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


def test_the_best_of_towers_that_is_asked_for_needs_the_name_of_one():
    with pytest.raises(ConfigError) as error:
        require_for_training(two_towers(export_config={"exporter_type": "best"}))

    assert str(error.value) == (
        "export_config.best_exporter_metric: evaluation does not give 'auc'; "
        "of its towers it gives auc_click, auc_buy"
    )


def test_results_are_named_by_section_and_tower():
    tower = {
        "tower_name": "buy",
        "label_name": "click",
        "metrics": [{"auc": {}}],
        "losses": [{"binary_cross_entropy": {}}],
    }
    model = {"feature_groups": [], "simple_multi_task": {"task_towers": [tower]}}
    run = RunConfig.model_validate(run_data(model_config=model))

    assert result_names(run.model) == ["auc_buy", "binary_cross_entropy_buy"]


def test_a_model_of_towers_needs_one():
    model = {"feature_groups": [{"group_name": "all", "feature_names": ["user_id"]}], "simple_multi_task": {}}

    with pytest.raises(ConfigError) as error:
        require_for_training(RunConfig.model_validate(run_data(model_config=model)))

    assert str(error.value) == (
        "model_config.simple_multi_task.task_towers: is empty; name at least one task"
    )
