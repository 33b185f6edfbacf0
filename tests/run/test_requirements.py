"""What commands need from a run file."""

import pytest

from penstock.config.errors import ConfigError, format_path
from penstock.run.requirements import (
    require_for_evaluation,
    require_for_prediction,
    require_for_training,
)
from penstock.run.run_config import RunConfig
from tests.run.test_run_config import deepfm, run_data

EARLY, EXPORT = "train_config.early_stopping", "export_config"
DENSE = "train_config.dense_optimizer"
PLATEAU = f"{DENSE}.reduce_on_plateau_learning_rate"
GROUPS = [{"group_name": "all", "feature_names": ["user_id"]}]


def problems(data, require=require_for_training):
    with pytest.raises(ConfigError) as caught:
        require(RunConfig.model_validate(data))
    return {format_path(problem.path): problem.message for problem in caught.value.problems}


def run(train=None, **sections):
    """A run that evaluates, with some keys of train_config exchanged."""
    data = run_data(eval_input_path="eval.parquet", **sections)
    data["train_config"] |= train or {}
    return data


def plateau(**options):
    return run({"dense_optimizer": {"adam_optimizer": {}, "reduce_on_plateau_learning_rate": options}})


def tower(name="buy", **options):
    return {
        "tower_name": name,
        "label_name": "click",
        "metrics": [{"auc": {}}],
        "losses": [{"binary_cross_entropy": {}}],
        **options,
    }


def towers(*each, **model):
    return {"feature_groups": GROUPS, "simple_multi_task": {"task_towers": list(each)}, **model}


def test_commands_list_everything_that_is_missing():
    """What has a default where there are features is not among it where there are none."""
    told = problems({})
    assert list(told) == ["train_input_path", "feature_configs", "data_config.label_fields"]
    assert told["train_input_path"] == "is required by this command; set it, or give --train_input_path"
    assert list(problems({}, require_for_prediction)) == ["feature_configs"]
    without_model = {"feature_configs": run_data()["feature_configs"]}
    assert list(problems(without_model, require_for_prediction)) == ["model_dir", "model_config"]
    assert list(problems(run_data(), require_for_evaluation)) == ["eval_input_path"]


REFUSED = {
    "not available yet": (
        run(data_config={"label_fields": ["click"], "negative_sample_mask_prob": 0.1}),
        "data_config.negative_sample_mask_prob",
        None,
    ),
    "no loss": (
        run(model_config=deepfm(losses=[])),
        "model_config.losses",
        "is empty; binary_cross_entropy fits a label of 0 or 1",
    ),
    "a best in the wrong direction": (
        run(export_config={"metric_larger_is_better": False}),
        f"{EXPORT}.metric_larger_is_better",
        "is false, but more auc is better",
    ),
    "a stop by a metric that there is not": (
        run({"early_stopping": {"metric": "ndcg"}}),
        f"{EARLY}.metric",
        "evaluation does not give 'ndcg'; known: auc, binary_cross_entropy",
    ),
    "a stop without evaluations": (
        run({"early_stopping": {"metric": "auc"}}) | {"eval_input_path": ""},
        EARLY,
        "needs eval_input_path: without it nothing is evaluated",
    ),
    "a stop with evaluations after the end alone": (
        run({"early_stopping": {"metric": "auc"}, "save_checkpoints_steps": 0}),
        EARLY,
        "learns from evaluations, which come only after the end; set train_config.eval_steps",
    ),
    "a stop in the wrong direction": (
        run({"early_stopping": {"metric": "auc", "mode": "min"}}),
        f"{EARLY}.mode",
        "is min, but more auc is better",
    ),
    "an improvement that is never reached": (
        run({"early_stopping": {"metric": "auc", "min_delta": 1.0}}),
        f"{EARLY}.min_delta",
        "is 1.0, but auc is between 0 and 1 and never gets so much better",
    ),
    "a plateau of what should get less": (
        plateau(metric="binary_cross_entropy"),
        f"{PLATEAU}.mode",
        "is max, but less binary_cross_entropy is better; write mode: min",
    ),
    "a scaler without FP16": (
        run({"mixed_precision": "BF16", "grad_scaler": {}}),
        "train_config.grad_scaler",
        "scales losses of FP16 alone; set mixed_precision: FP16, or leave it out",
    ),
}


@pytest.mark.parametrize(("data", "path", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_with_its_path(data, path, message):
    told = problems(data)

    assert list(told) == [path]
    assert message is None or told[path] == message


def test_what_is_best_near_1_decides_nothing():
    data = run(
        {"early_stopping": {"metric": "calibration"}}, export_config={"best_exporter_metric": "calibration"}
    )
    data["model_config"]["metrics"] = [{"calibration": {}}]

    assert list(problems(data)) == [f"{EXPORT}.best_exporter_metric", f"{EARLY}.metric"]


@pytest.mark.parametrize(("name", "mode"), [("calibration_error", "min"), ("auc_gap", "max")])
def test_a_custom_metric_may_begin_like_another(name, mode):
    data = plateau(metric=name, mode=mode)
    data["export_config"] = {"best_exporter_metric": name, "metric_larger_is_better": mode == "max"}
    data["model_config"]["metrics"] = [{"custom_metric": {"import_path": "own:Metric", "name": name}}]
    data["train_config"] |= {"eval_steps": 1}
    data["train_config"]["early_stopping"] = {"metric": name, "mode": mode, "min_delta": 2.0}

    require_for_training(RunConfig.model_validate(data))


def test_towers_without_a_metric_that_picks_the_best_are_warned_of(caplog):
    model = towers(tower("click"), tower())
    require_for_training(RunConfig.model_validate(run(model_config=model)))

    assert caplog.messages == [
        (
            "no checkpoint will be the best: export_config.best_exporter_metric is auc where it is not written, and "
            "evaluation does not give 'auc'; of its towers it gives auc_click, auc_buy"
        )
    ]
    caplog.clear()
    named = run(model_config=model, export_config={"best_exporter_metric": "auc_buy"})
    require_for_training(RunConfig.model_validate(named))
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"grad_clipping": {"clipping_type": "none", "max_gradient": 2.0}}, {}),  # switched off by name
        ({"sparse_optimizer": {"sgd_optimizer": {"gradient_clipping": True, "max_gradient": 2.0}}}, {}),
        (
            {"histogram_steps": 10},
            {
                "histogram_steps": "writes nothing without parameter or gradient in train_config.tensorboard_summaries"
            },
        ),
        (
            {"grad_clipping": {"max_gradient": 2.0}},
            {
                "grad_clipping.clipping_type": "is none where it is not written, so that nothing is clipped; "
                "write norm or value"
            },
        ),
        (
            {"sparse_optimizer": {"sgd_optimizer": {"max_gradient": 2.0}}},
            {"sparse_optimizer.sgd_optimizer.max_gradient": "bounds nothing without gradient_clipping: true"},
        ),
    ],
)
def test_a_setting_that_waits_for_another_is_refused(settings, told):
    train = RunConfig.model_validate(run(settings)).train_config

    assert {each.path: each.message for each in train.problems("cpu")} == {
        f"train_config.{key}": message for key, message in told.items()
    }


def test_weights_of_a_tower_wait_for_what_they_weigh():
    model = towers(tower(pareto_min_loss_weight=0.3, out_task_space_weight=0.5))

    place = "model_config.simple_multi_task.task_towers[0]"
    assert problems(run(model_config=model)) == {
        f"{place}.pareto_min_loss_weight": (
            "is for weights that are found; set model_config.use_pareto_loss_weight: true, or leave it out"
        ),
        f"{place}.out_task_space_weight": (
            "needs task_space_indicator_label, which tells the rows of the space"
        ),
    }


COSINE = {"cosine_annealing_learning_rate": {"T_max": 10, "min_learning_rate": 0.01}}
FALLING = {
    "exponential_decay_learning_rate": {"decay_size": 5, "warmup_learning_rate": 0.5, "warmup_size": 3}
}
WITHOUT_STEPS = {"cosine_annealing_learning_rate": {"T_max": 5, "warmup_learning_rate": 0.0001}}
PART = {"regex_pattern": ".*", "sgd_optimizer": {"lr": 0.002}, **COSINE}


def test_schedules_go_down_to_a_minimum_and_up_from_a_warm_up():
    sparse, dense = {"adagrad_optimizer": {"lr": 0.1}}, {"adam_optimizer": {"lr": 0.001}}
    frozen = {"adagrad_optimizer": {"lr": 0.0}, **COSINE}  # a base rate of 0 stays 0 whatever the minimum
    minimum = "from which the schedule goes down; lower one or raise the other"

    assert problems(
        run({"sparse_optimizer": frozen, "dense_optimizer": {**dense, **COSINE, "part_optimizers": [PART]}})
    ) == {
        f"{DENSE}.cosine_annealing_learning_rate.min_learning_rate": (
            f"is 0.01, above adam_optimizer.lr 0.001, {minimum}"
        ),
        f"{DENSE}.part_optimizers[0].cosine_annealing_learning_rate.min_learning_rate": (
            f"is 0.01, above sgd_optimizer.lr 0.002, {minimum}"
        ),
    }
    assert problems(
        run({"sparse_optimizer": {**sparse, **FALLING}, "dense_optimizer": {**dense, **WITHOUT_STEPS}})
    ) == {
        "train_config.sparse_optimizer.exponential_decay_learning_rate.warmup_learning_rate": (
            "is 0.5, above adagrad_optimizer.lr 0.1, to which a warm-up rises; lower one or raise the other"
        ),
        f"{DENSE}.cosine_annealing_learning_rate.warmup_learning_rate": (
            "is 0.0001, but the warm-up has no steps; set warmup_size"
        ),
    }
