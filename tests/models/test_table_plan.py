"""Every problem of the feature groups is told, with its place."""

import pytest

from penstock.config.errors import ConfigError
from penstock.models.sections import FeatureGroupConfig
from penstock.models.table_plan import plan_tables
from tests.models.small_data import dense_feature, id_feature


def problems(features, *groups):
    configs = [FeatureGroupConfig.model_validate({"group_name": "deep", **group}) for group in groups]
    with pytest.raises(ConfigError) as caught:
        plan_tables(configs, features)
    return [str(problem) for problem in caught.value.problems]


def test_all_problems_of_all_groups_at_once():
    found = problems(
        [id_feature("user"), dense_feature("age")],
        {"feature_names": ["uesr", "age", "age"]},
        {"group_name": "seq", "group_type": "SEQUENCE", "feature_names": ["user"]},
        {"group_name": "wide", "group_type": "WIDE"},
    )

    assert found == [
        "model_config.feature_groups[0].feature_names[0]: there is no feature 'uesr'; did you mean 'user'?",
        "model_config.feature_groups[0].feature_names[2]: 'age' is there twice",
        "model_config.feature_groups[1].group_type: SEQUENCE is not available yet; available: DEEP, WIDE",
        "model_config.feature_groups[2].feature_names: is empty",
    ]


def test_a_group_name_is_given_once():
    group = {"feature_names": ["user"]}

    assert problems([id_feature("user")], group, group) == [
        "model_config.feature_groups[1].group_name: 'deep' is there twice"
    ]


def test_features_that_share_a_table_must_agree_on_it():
    features = [id_feature("a", num_rows=10, table="ids"), id_feature("b", num_rows=20, table="ids")]

    [problem] = problems(features, {"feature_names": ["a", "b"]})

    assert problem == (
        "feature_configs: feature 'b': table 'ids': asks for 20 rows of 4, sum pooling, trainable true; "
        "'a' has made it 10 rows of 4, sum pooling, trainable true"
    )


def test_weights_and_mean_do_not_go_together():
    features = [id_feature("a", weighted=True, pooling="mean")]

    assert problems(features, {"feature_names": ["a"]}) == [
        "feature_configs: feature 'a': table 'a': a weighted feature cannot be pooled by mean; use sum"
    ]


def test_what_the_kernels_cannot_hold_is_refused():
    assert problems([id_feature("a", dim=10, data_type="FP16")], {"feature_names": ["a"]}) == [
        "feature_configs: feature 'a': table 'a': data_type FP16 is not available yet; available: FP32",
        "feature_configs: feature 'a': table 'a': embedding_dim is 10, not a multiple of 4; use 12",
    ]
