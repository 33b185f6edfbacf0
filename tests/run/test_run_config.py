"""What the run file says about itself as a whole."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from penstock.run.run_config import DataConfig, RunConfig


def id_feature(name, **options):
    return {
        "id_feature": {
            "feature_name": name,
            "expression": f"user:{name}",
            "embedding_dim": 4,
            "num_buckets": 10,
            **options,
        }
    }


def raw_feature(name, **options):
    return {"raw_feature": {"feature_name": name, "expression": f"user:{name}", **options}}


def deepfm(**options):
    return {
        "feature_groups": [{"group_name": "deep", "feature_names": ["user_id", "age"]}],
        "deepfm": {"deep": {"hidden_units": [8]}},
        "losses": [{"binary_cross_entropy": {}}],
        "metrics": [{"auc": {}}],
        **options,
    }


def run_data(**sections):
    return {
        "train_input_path": "train/*.parquet",
        "model_dir": "runs/first",
        "data_config": {"label_fields": ["click"]},
        "feature_configs": [id_feature("user_id"), raw_feature("age")],
        "model_config": deepfm(),
        "train_config": {
            "sparse_optimizer": {"adagrad_optimizer": {"lr": 0.01}},
            "dense_optimizer": {"adam_optimizer": {"lr": 0.001}},
            "num_epochs": 1,
        },
        **sections,
    }


def problems(data):
    with pytest.raises(ValidationError) as error:
        RunConfig.model_validate(data)
    return {".".join(map(str, detail["loc"])): detail["msg"] for detail in error.value.errors()}


def test_a_run_file_may_be_empty_until_a_command_needs_something():
    run = RunConfig.model_validate({})

    assert run.train_input_path == ""
    assert run.model is None
    assert run.data_config.batch_size == 1024
    assert run.memory.limit is None


def test_a_run_file_with_preprocessing_alone_is_valid():
    run = RunConfig.model_validate({"preprocessing": {"input_path": "replays/*", "num_workers": None}})

    assert run.preprocessing.batch_size == 500


def test_the_model_is_called_model_config_in_the_file():
    run = RunConfig.model_validate(run_data())

    assert run.model.chosen("model")[0] == "deepfm"
    assert "model_config" in run.model_dump(by_alias=True)


def test_data_config_holds_the_parts_of_five_owners():
    data = DataConfig.model_validate(
        {"delimiter": ";", "batch_size": 8, "label_fields": ["y"], "num_workers": 2, "seed": 3}
    )

    assert (data.delimiter, data.batch_size, data.label_fields, data.num_workers) == (";", 8, ["y"], 2)
    assert data.chosen("sampler") is None


def test_a_feature_name_is_used_once():
    data = run_data(feature_configs=[id_feature("user_id"), raw_feature("age"), raw_feature("user_id")])

    message = "'user_id' is there already, in feature_configs[0].id_feature"
    assert problems(data) == {"feature_configs.2.raw_feature.feature_name": message}


def test_a_group_that_names_an_unknown_feature_gets_the_nearest_name():
    groups = [{"group_name": "deep", "feature_names": ["user_id", "agee"]}]

    message = "there is no feature named 'agee'; did you mean 'age'?"
    assert problems(run_data(model_config=deepfm(feature_groups=groups))) == {
        "model_config.feature_groups.0.feature_names.1": message
    }


def test_groups_are_those_that_the_model_reads():
    groups = [
        {"group_name": "deap", "feature_names": ["user_id"]},
        {"group_name": "wide", "feature_names": ["user_id"]},
    ]

    assert problems(run_data(model_config=deepfm(feature_groups=groups))) == {
        "model_config.feature_groups.0.group_name": "deepfm has no group 'deap'; did you mean 'deep'?",
        "model_config.feature_groups.1.group_type": "is DEEP; the group 'wide' of deepfm is WIDE",
        "model_config.feature_groups": "deepfm needs a group 'deep' of type DEEP",
    }


def test_a_metric_is_listed_once():
    data = run_data(model_config=deepfm(metrics=[{"auc": {}}, {"log_loss": {}}, {"auc": {}}]))

    assert problems(data) == {"model_config.metrics.2": "'auc' is there already"}


def test_towers_name_labels_weights_and_towers_that_are_there():
    towers = [
        {"tower_name": "click", "label_name": "clik"},
        {"tower_name": "buy", "label_name": "click", "relation_tower_names": ["clicks"]},
    ]
    model = {"feature_groups": [], "dbmtl": {"task_towers": towers}}

    assert problems(run_data(model_config=model)) == {
        "model_config.dbmtl.task_towers.0.label_name": (
            "there is no label in data_config.label_fields named 'clik'; did you mean 'click'?"
        ),
        "model_config.dbmtl.task_towers.1.relation_tower_names.0": (
            "there is no tower named 'clicks'; did you mean 'click'?"
        ),
    }


def test_features_of_a_sequence_are_known_by_both_names():
    history = {"sequence_name": "clicks", "sequence_length": 50, "features": [id_feature("item_id")]}
    groups = [{"group_name": "deep", "feature_names": ["user_id", "clicks__item_id"]}]
    data = run_data(
        feature_configs=[id_feature("user_id"), {"sequence_feature": history}],
        model_config=deepfm(feature_groups=groups),
    )

    assert RunConfig.model_validate(data).feature_configs[1].chosen("feature")[0] == "sequence_feature"


def test_reading_a_run_file_does_not_import_torch():
    code = "import sys, penstock.run.run_config; assert 'torch' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True)
