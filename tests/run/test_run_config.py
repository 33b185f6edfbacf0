"""What is wrong in a run file as a whole is found when it is read, each problem by its path."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from penstock.run.run_config import RunConfig


def id_feature(name, **options):
    table = {"embedding_dim": 4, "num_buckets": 10, **options}
    return {"id_feature": {"feature_name": name, "expression": f"user:{name}", **table}}


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


def features(*configs):
    """A run whose group `deep` holds all of these features."""
    names = [next(iter(config.values()))["feature_name"] for config in configs]
    groups = [{"group_name": "deep", "feature_names": names}]
    return run_data(feature_configs=list(configs), model_config=deepfm(feature_groups=groups))


def groups(*configs, **model):
    return run_data(model_config=deepfm(feature_groups=list(configs), **model))


def group(name, *names, **options):
    return {"group_name": name, "feature_names": list(names), **options}


def test_a_run_file_may_be_empty_until_a_command_needs_something():
    run = RunConfig.model_validate({})

    assert (run.train_input_path, run.model, run.memory.limit) == ("", None, None)
    assert run.data_config.batch_size == 1024
    prepared = RunConfig.model_validate({"preprocessing": {"input_path": "replays/*", "num_workers": None}})
    assert prepared.preprocessing.batch_size == 500


def test_reading_a_run_file_does_not_import_torch():
    code = "import sys, penstock.run.run_config; assert 'torch' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True)


SHARED = [id_feature("a", embedding_name="t")]
HISTORY = {"sequence_name": "clicks", "sequence_length": 50, "features": [id_feature("item_id")]}
THREE = {"num_class": 3, "losses": [{"softmax_cross_entropy": {}}]}
ACCEPTED = {
    "numbers without boundaries have no table whose width could be wrong": features(
        id_feature("user"), raw_feature("age", embedding_dim=5)
    ),
    "a group fm that decides what is multiplied": run_data(
        feature_configs=[id_feature("user"), id_feature("item"), id_feature("city", embedding_dim=8)],
        model_config=deepfm(
            feature_groups=[group("deep", "user", "item", "city"), group("fm", "user", "item")]
        ),
    ),
    "features of a sequence by both names": run_data(
        feature_configs=[id_feature("user_id"), {"sequence_feature": HISTORY}],
        model_config=deepfm(feature_groups=[group("deep", "user_id", "clicks__item_id")]),
    ),
}


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_goes_together(data):
    assert RunConfig.model_validate(data)


def sharing(**options):
    return features(*SHARED, id_feature("b", embedding_name="t", **options))


FEATURE, GROUPS, MODEL = "feature_configs.1.id_feature", "model_config.feature_groups", "model_config"
TOWERS = [
    {"tower_name": "click", "label_name": "clik"},
    {"tower_name": "buy", "label_name": "click", "relation_tower_names": ["clicks"]},
]
PAST = {"sequence_feature": HISTORY}
TIMES = {"sequence_raw_feature": {"feature_name": "times", "expression": "user:times"}}
CLICKS = {"feature_names": ["user_id", "clicks__item_id"]}


def history(*configs, **model):
    """A run with a history of items and of times."""
    model_config = deepfm(feature_groups=list(configs), **model)
    return run_data(feature_configs=[id_feature("user_id"), PAST, TIMES], model_config=model_config)


def encoded(*encoders, sequences=(CLICKS,), **options):
    return group(
        "deep", "user_id", sequence_groups=list(sequences), sequence_encoders=list(encoders), **options
    )


ENCODERS = f"{GROUPS}.0.sequence_encoders.0"
MULTI_TOWER_DIN = {
    "towers": [{"input": "deep"}],
    "din_towers": [{"input": "deep", "attn_mlp": {}}, {"input": "clicked", "attn_mlp": {}}],
    "final": {},
}
REFUSED = {
    "a sequence of numbers among the features of rows": (
        history(group("deep", "user_id", "times")),
        {
            f"{GROUPS}.0.feature_names.1": "'times' is a sequence of numbers; it enters a DEEP group by sequence_groups"
        },
    ),
    "an encoder of an unknown sequence group": (
        history(
            encoded({"pooling_encoder": {"input": "click"}}, sequences=[{"group_name": "clicks", **CLICKS}])
        ),
        {
            f"{ENCODERS}.pooling_encoder.input": "there is no sequence group 'click'; did you mean 'clicks'?",
            f"{GROUPS}.0.sequence_groups.0": "no encoder reads it; add one to sequence_encoders",
        },
    ),
    "attention without a query": (
        history(encoded({"simple_attention": {}}, sequences=[{"feature_names": ["clicks__item_id"]}])),
        {
            f"{ENCODERS}.simple_attention": "has no query: its sequence group holds sequences only; "
            "add a feature of the row"
        },
    ),
    "a sequence group without a sequence": (
        history(encoded({"pooling_encoder": {}}, sequences=[{"feature_names": ["user_id"]}])),
        {
            f"{GROUPS}.0.sequence_groups.0.feature_names": "holds no sequence feature; a sequence group needs one, "
            "such as a sequence_id_feature"
        },
    ),
    "two encoders of one name": (
        history(encoded({"pooling_encoder": {}}, {"pooling_encoder": {"pooling_type": "sum"}})),
        {
            f"{GROUPS}.0.sequence_encoders.1.pooling_encoder.name": "'pooling_encoder' is there already, in "
            "sequence_encoders[0]; parameters are named after it"
        },
    ),
    "encoders in a wide group": (
        history(encoded({"pooling_encoder": {}}, group_type="WIDE"), deepfm=None, simple_multi_task={}),
        {f"{GROUPS}.0.sequence_groups": "belongs to a DEEP group; this one is WIDE"},
    ),
    "towers without their groups": (
        history(
            group("deep", "user_id"), group("more", "user_id"), deepfm=None, multi_tower_din=MULTI_TOWER_DIN
        ),
        {
            f"{MODEL}.multi_tower_din.din_towers.0.input": "the group 'deep' is DEEP; din_towers take SEQUENCE",
            f"{MODEL}.multi_tower_din.din_towers.1.input": "there is no feature group named 'clicked'; "
            "known: deep, more",
            f"{GROUPS}.1.group_name": "no tower of multi_tower_din reads 'more'",
        },
    ),
    "a table of other rows": (
        sharing(num_buckets=None, vocab_list=["a", "b", "c"]),
        {f"{FEATURE}.vocab_list": "makes 5 rows, but 'a' shares the table 't' and has 10"},
    ),
    "a table that is pooled and moves otherwise": (
        sharing(pooling="mean", trainable=False),
        {
            f"{FEATURE}.pooling": "is mean, but 'a' shares the table 't' and has sum",
            f"{FEATURE}.trainable": "is False, but 'a' shares the table 't' and has True",
        },
    ),
    "a feature twice in a group, and a group without any": (
        groups(group("deep", "user_id", "age", "age"), group("wide", group_type="WIDE")),
        {f"{GROUPS}.0.feature_names.2": "'age' is there already", f"{GROUPS}.1.feature_names": "is empty"},
    ),
    "groups that the model does not read": (
        groups(group("deap", "user_id"), group("wide", "user_id")),
        {
            f"{GROUPS}.0.group_name": "deepfm has no group 'deap'; did you mean 'deep'?",
            f"{GROUPS}.1.group_type": "is DEEP; the group 'wide' of deepfm is WIDE",
            GROUPS: "deepfm needs a group 'deep' of type DEEP",
        },
    ),
    "a number in the group fm": (
        groups(group("deep", "age"), group("fm", "user_id", "age")),
        {f"{GROUPS}.1.feature_names.1": "'age' has no embedding; the group 'fm' takes vectors"},
    ),
    "metrics of classes without classes": (
        run_data(model_config=deepfm(metrics=[{"multiclass_auc": {}}, {"accuracy": {"top_k": 2}}])),
        {
            f"{MODEL}.metrics.0.multiclass_auc": "needs num_class 2 or more; it is 1: use auc",
            f"{MODEL}.metrics.1.accuracy.top_k": (
                "is 2, but with num_class 1 a threshold decides; leave it out"
            ),
        },
    ),
    "a metric that hides a loss": (
        run_data(
            model_config=deepfm(
                metrics=[{"custom_metric": {"import_path": "own:Brier", "name": "binary_cross_entropy"}}]
            )
        ),
        {
            f"{MODEL}.metrics.0.custom_metric.name": (
                "'binary_cross_entropy' is the name of a loss; choose another"
            )
        },
    ),
    "a stub in a group": (
        features(id_feature("user_id"), {"raw_feature": {"feature_name": "age", "stub_type": True}}),
        {
            "feature_configs.1.raw_feature.stub_type": (
                "is true, so it only feeds other features, but the group 'deep' has it"
            )
        },
    ),
    "towers of labels and towers that are not there": (
        run_data(model_config={"feature_groups": [], "dbmtl": {"task_towers": TOWERS}}),
        {
            f"{MODEL}.dbmtl.task_towers.0.label_name": (
                "there is no label in data_config.label_fields named 'clik'; did you mean 'click'?"
            ),
            f"{MODEL}.dbmtl.task_towers.1.relation_tower_names.0": (
                "there is no tower named 'clicks'; did you mean 'click'?"
            ),
        },
    ),
}


@pytest.mark.parametrize(("data", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_go_together(data, told):
    with pytest.raises(ValidationError) as error:
        RunConfig.model_validate(data)

    assert {".".join(map(str, detail["loc"])): detail["msg"] for detail in error.value.errors()} == told


def test_a_star_leaves_out_stubs():
    configs = [id_feature("user_id"), {"raw_feature": {"feature_name": "age", "stub_type": True}}]
    run = run_data(feature_configs=configs, model_config=deepfm(feature_groups=[group("deep", "*")]))

    assert RunConfig.model_validate(run).model.feature_groups[0].feature_names == ["user_id"]
