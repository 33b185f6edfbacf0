"""What is wrong between sections of a run file is told when it is read, each problem by its path."""

import pytest

from penstock.run.run_config import RunConfig
from tests.run.test_run_config import deepfm, id_feature, problems, raw_feature, run_data

VOCABULARY = {"num_buckets": None, "vocab_list": ["a", "b", "c"]}


def features(*configs):
    """A run whose group `deep` holds all of these features."""
    names = [next(iter(config.values()))["feature_name"] for config in configs]
    groups = [{"group_name": "deep", "feature_names": names}]
    return run_data(feature_configs=list(configs), model_config=deepfm(feature_groups=groups))


def groups(*configs, **model):
    return run_data(model_config=deepfm(feature_groups=list(configs), **model))


def test_a_width_is_a_multiple_of_4():
    data = features(
        id_feature("user", embedding_dim=10), raw_feature("age", boundaries=[1.0], embedding_dim=10)
    )
    data["model_config"]["deepfm"]["wide_embedding_dim"] = 6

    assert problems(data) == {
        "feature_configs.0.id_feature.embedding_dim": "is 10, not a multiple of 4; use 12",
        "feature_configs.1.raw_feature.embedding_dim": "is 10, not a multiple of 4; use 12",
        "model_config.deepfm.wide_embedding_dim": "is 6, not a multiple of 4; use 8",
    }


def test_numbers_without_boundaries_have_no_table_whose_width_could_be_wrong():
    assert RunConfig.model_validate(features(id_feature("user"), raw_feature("age", embedding_dim=5)))


def test_weights_and_mean_do_not_go_together():
    assert problems(features(id_feature("user", weighted=True, pooling="mean"))) == {
        "feature_configs.0.id_feature.pooling": "a weighted feature cannot be pooled by mean; use sum"
    }


@pytest.mark.parametrize(
    ("options", "place", "message"),
    [
        (
            {"num_buckets": None, "hash_bucket_size": 20},
            "hash_bucket_size",
            "makes 20 rows, but 'a' {} and has 10",
        ),
        (VOCABULARY, "vocab_list", "makes 5 rows, but 'a' {} and has 10"),
        ({"init_fn": "nn.init.zeros_"}, "init_fn", "is nn.init.zeros_, but 'a' {} and has none"),
        ({"pooling": "mean"}, "pooling", "is mean, but 'a' {} and has sum"),
        ({"trainable": False}, "trainable", "is False, but 'a' {} and has True"),
    ],
)
def test_features_that_share_a_table_mean_the_same_table(options, place, message):
    data = features(id_feature("a", embedding_name="t"), id_feature("b", embedding_name="t", **options))

    assert problems(data) == {f"feature_configs.1.id_feature.{place}": message.format("shares the table 't'")}


def test_a_table_may_be_shared_by_the_name_it_has_from_its_feature():
    data = features(id_feature("a"), id_feature("b", embedding_name="a_emb", num_buckets=20))

    assert problems(data) == {
        "feature_configs.1.id_feature.num_buckets": "makes 20 rows, but 'a' shares the table 'a_emb' and has 10"
    }


def test_tables_of_as_many_rows_may_be_shared_whatever_makes_the_rows():
    hashed = id_feature("b", embedding_name="t", num_buckets=None, hash_bucket_size=10)

    assert RunConfig.model_validate(features(id_feature("a", embedding_name="t"), hashed))


def test_a_group_has_features_each_once():
    assert problems(
        groups(
            {"group_name": "deep", "feature_names": ["user_id", "age", "age"]},
            {"group_name": "wide", "group_type": "WIDE"},
        )
    ) == {
        "model_config.feature_groups.0.feature_names.2": "'age' is there already",
        "model_config.feature_groups.1.feature_names": "is empty",
    }


def test_a_group_name_is_given_once():
    group = {"group_name": "deep", "feature_names": ["user_id"]}

    assert problems(groups(group, group)) == {
        "model_config.feature_groups.1.group_name": "'deep' is there already"
    }


def test_a_model_without_a_group_it_needs():
    group = {"group_name": "deep", "feature_names": ["user_id"]}

    assert problems(groups(group, deepfm=None, wide_and_deep={"deep": {}})) == {
        "model_config.feature_groups": "wide_and_deep needs a group 'wide' of type WIDE"
    }


def test_the_factorisation_machine_needs_one_width():
    data = features(id_feature("user"), id_feature("item", embedding_dim=8), raw_feature("age"))

    message = "is 8, but 'user' has 4; the factorisation machine needs one for all of its features"
    assert problems(data) == {"feature_configs.1.id_feature.embedding_dim": message}


def test_a_group_fm_decides_what_is_multiplied():
    data = features(id_feature("user"), id_feature("item"), id_feature("city", embedding_dim=8))
    data["model_config"]["feature_groups"].append({"group_name": "fm", "feature_names": ["user", "item"]})

    assert RunConfig.model_validate(data)


def test_the_factorisation_machine_takes_vectors():
    deep = {"group_name": "deep", "feature_names": ["age"]}

    message = "deepfm needs a feature with an embedding here, or a group 'fm' of such features"
    assert problems(groups(deep)) == {"model_config.feature_groups.0.feature_names": message}
    assert problems(groups(deep, {"group_name": "fm", "feature_names": ["user_id", "age"]})) == {
        "model_config.feature_groups.1.feature_names.1": "'age' has no embedding; the group 'fm' takes vectors"
    }


def test_metrics_of_classes_need_classes():
    metrics = [{"multiclass_auc": {}}, {"accuracy": {"top_k": 2}}]

    assert problems(run_data(model_config=deepfm(metrics=metrics))) == {
        "model_config.metrics.0.multiclass_auc": "needs num_class 2 or more; it is 1: use auc",
        "model_config.metrics.1.accuracy.top_k": "is 2, but with num_class 1 a threshold decides; leave it out",
    }


def test_a_row_may_be_wrong():
    three = {"num_class": 3, "losses": [{"softmax_cross_entropy": {}}]}

    assert problems(run_data(model_config=deepfm(metrics=[{"accuracy": {"top_k": 3}}], **three))) == {
        "model_config.metrics.0.accuracy.top_k": "is 3 of 3 classes, with which every row would be right; lower it"
    }
    assert RunConfig.model_validate(
        run_data(model_config=deepfm(metrics=[{"accuracy": {"top_k": 2}}], **three))
    )


def test_a_metric_does_not_hide_a_loss():
    metric = {"custom_metric": {"place": "own:Brier", "name": "binary_cross_entropy"}}

    assert problems(run_data(model_config=deepfm(metrics=[metric]))) == {
        "model_config.metrics.0.custom_metric.name": (
            "'binary_cross_entropy' is the name of a loss; choose another"
        )
    }
