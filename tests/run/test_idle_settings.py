"""Settings that change nothing as they stand."""

import pytest

from penstock.run.requirements import idle_settings, idle_tower_settings
from penstock.run.run_config import RunConfig
from tests.run.test_run_config import run_data


def told(**settings):
    data = run_data()
    data["train_config"] |= settings
    train = RunConfig.model_validate(data).train_config
    return {problem.path.removeprefix("train_config."): problem.message for problem in idle_settings(train)}


def test_nothing_is_said_of_settings_that_do_something():
    assert told(grad_clipping={"clipping_type": "norm", "max_gradient": 2.0}) == {}
    assert told(sparse_optimizer={"sgd_optimizer": {"gradient_clipping": True, "max_gradient": 2.0}}) == {}
    assert told(grad_clipping={"clipping_type": "none", "max_gradient": 2.0}) == {}  # switched off by name


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
    assert told(**settings) == {path: message}


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
    assert {problem.path: problem.message for problem in idle_tower_settings(run.model)} == {
        f"{place}.pareto_min_loss_weight": (
            "is for weights that are found; set model_config.use_pareto_loss_weight: true, or leave it out"
        ),
        f"{place}.out_task_space_weight": (
            "needs task_space_indicator_label, which tells the rows of the space"
        ),
    }
