import logging

import pytest

from penstock.config.errors import ConfigError
from penstock.features.build import build_features
from penstock.features.feature import TableSpec
from penstock.features.sections import FeatureConfig, ParsingSection

RAW_INPUT = ParsingSection.model_validate({"fg_mode": "FG_NORMAL"})


def id_feature(name, **options):
    fields = {"feature_name": name, "expression": f"user:{name}", "embedding_dim": 4, "num_buckets": 10}
    return FeatureConfig.model_validate({"id_feature": {**fields, **options}})


def raw_feature(name, **options):
    return FeatureConfig.model_validate(
        {"raw_feature": {"feature_name": name, "expression": f"item:{name}", **options}}
    )


def problems_of(configs):
    with pytest.raises(ConfigError) as caught:
        build_features(configs, RAW_INPUT)
    return [str(problem) for problem in caught.value.problems]


def test_the_table_of_a_feature():
    config = id_feature(
        "a", embedding_name="shared", pooling="mean", init_fn="nn.init.zeros_", trainable=False
    )

    assert build_features([config], RAW_INPUT)[0].table == TableSpec(
        "shared", num_rows=10, dim=4, pooling="mean", init_fn="nn.init.zeros_", trainable=False
    )
    assert build_features([id_feature("a")], RAW_INPUT)[0].table == TableSpec("a_emb", num_rows=10, dim=4)
    assert build_features([raw_feature("a")], RAW_INPUT)[0].table is None


def test_only_features_that_a_group_uses_are_built_and_it_says_so(caplog):
    with caplog.at_level(logging.INFO):
        features = build_features(
            [id_feature("a"), id_feature("b"), id_feature("c")], RAW_INPUT, used_names={"b"}
        )

    assert [feature.name for feature in features] == ["b"]
    assert caplog.messages == ["2 of 3 features are in no feature group and are not read: a, c"]


def test_all_problems_are_told_at_once():
    configs = [
        id_feature("a", expression="a"),
        id_feature("b", default_value="x"),
        FeatureConfig.model_validate(
            {"combo_feature": {"feature_name": "c", "expression": ["user:a", "user:b"]}}
        ),
    ]

    assert problems_of(configs) == [
        "feature_configs[0].id_feature.expression: 'a' is not of the form side:column, such as user:age",
        "feature_configs[1].id_feature.default_value: 'x' is not an integer",
        "feature_configs[2].combo_feature: not available yet; available: id_feature, raw_feature",
    ]


@pytest.mark.parametrize("mode", ["FG_DAG", "FG_BUCKETIZE"])
def test_modes_that_come_later(mode):
    parsing = ParsingSection.model_validate({"fg_mode": mode})

    with pytest.raises(ConfigError) as caught:
        build_features([id_feature("a")], parsing)

    assert str(caught.value) == f"data_config.fg_mode: {mode} is not available yet; FG_NONE and FG_NORMAL are"
