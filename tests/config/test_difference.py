"""Where two run files differ."""

from penstock.config.difference import Difference, differences


def test_changed_added_and_removed_keys_with_their_paths() -> None:
    old = {"train_config": {"num_epochs": 1, "seed": 3}, "data_config": {"shuffle": True}}
    new = {"train_config": {"num_epochs": 2, "seed": 3}, "data_config": {"label_fields": ["a", "b"]}}

    assert differences([old, new]) == [
        Difference("train_config.num_epochs", ("1", "2")),
        Difference("data_config.shuffle", ("true", None)),
        Difference("data_config.label_fields", (None, "[a, b]")),
    ]


def test_features_are_compared_by_name_not_by_place() -> None:
    user = {"id_feature": {"feature_name": "user", "embedding_dim": 8}}
    item = {"id_feature": {"feature_name": "item", "embedding_dim": 8}}
    wide_item = {"id_feature": {"feature_name": "item", "embedding_dim": 16}}

    assert differences([{"feature_configs": [user, item]}, {"feature_configs": [wide_item, user]}]) == [
        Difference("feature_configs[item].id_feature.embedding_dim", ("8", "16"))
    ]
