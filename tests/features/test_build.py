import logging

import pytest

from penstock.config.errors import ConfigError
from penstock.features import build_features
from penstock.features.sections import FeatureConfig, ParsingSection

RAW_INPUT = ParsingSection.model_validate({"fg_mode": "FG_NORMAL"})


def id_feature(name, **options):
    fields = {"feature_name": name, "expression": f"user:{name}", "embedding_dim": 4, "num_buckets": 10}
    return FeatureConfig.model_validate({"id_feature": {**fields, **options}})


def test_only_features_that_a_group_uses_are_built_and_it_says_so(caplog):
    with caplog.at_level(logging.INFO):
        features = build_features(
            [id_feature("a"), id_feature("b"), id_feature("c")], RAW_INPUT, used_names={"b"}
        )

    assert [feature.name for feature in features] == ["b"]
    assert caplog.messages == ["2 of 3 features are in no feature group and are not read: a, c"]


def test_all_problems_are_told_at_once():
    configs = [
        id_feature("a", expression="a:b"),
        id_feature("b", default_value="x"),
        FeatureConfig.model_validate(
            {"combo_feature": {"feature_name": "c", "expression": ["user:a", "user:b"]}}
        ),
    ]

    with pytest.raises(ConfigError) as caught:
        build_features(configs, RAW_INPUT)

    sizes = "hash_bucket_size, vocab_list, vocab_dict, vocab_file, zch, dynamicemb"
    assert [str(problem) for problem in caught.value.problems] == [
        "feature_configs[0].id_feature.expression: 'a:b': unknown side 'a'; known: const, context, feature, item, user",
        "feature_configs[1].id_feature.default_value: 'x' is not an integer",
        f"feature_configs[2].combo_feature: gives strings, which become ids by one of {sizes}",
    ]


WRONG_OPTIONS = {
    "id_feature.expression: 'usr:age': unknown side 'usr'; did you mean 'user'?": {
        "num_buckets": 3,
        "expression": "usr:age",
    },
    "id_feature.default_value: '3' is outside 0 to 2": {"num_buckets": 3, "default_value": "3"},
    "id_feature.vocab_dict: 'a' has row 0; rows begin at 2 (0 is the default value, 1 any unknown one), "
    "unless default_bucketize_value says which row is for unknown values": {"vocab_dict": {"a": 0}},
    "raw_feature.default_value: 'x' is not a number": {"default_value": "x"},
    "raw_feature.default_value: has 2 numbers; value_dim is 3": {"default_value": "1\x1d2", "value_dim": 3},
}


@pytest.mark.parametrize("problem", WRONG_OPTIONS)
def test_wrong_options(one_feature, problem):
    with pytest.raises(ConfigError) as caught:
        one_feature(problem.partition(".")[0], "FG_NORMAL", **WRONG_OPTIONS[problem])

    assert str(caught.value) == f"feature_configs[0].{problem}"
