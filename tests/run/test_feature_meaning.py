"""What the inputs of a model mean: which changes of a run file change it, and how that is told."""

import json

import pytest

from penstock.run.feature_meaning import differences, feature_meaning
from penstock.run.run_config import RunConfig
from tests.run.test_run_config import deepfm, id_feature, raw_feature, run_data


def meaning(*features, mode="FG_NORMAL", names=("user_id", "age"), **data):
    groups = [{"group_name": "deep", "feature_names": list(names)}]
    run = RunConfig.model_validate(
        run_data(
            data_config={"label_fields": ["click"], "fg_mode": mode, **data},
            feature_configs=list(features) or [id_feature("user_id"), raw_feature("age")],
            model_config=deepfm(feature_groups=groups),
        )
    )
    return feature_meaning(run)


def user(**options):
    return meaning(id_feature("user_id", **options), raw_feature("age"))


def words(*values, **options):
    return user(num_buckets=None, vocab_list=list(values), **options)


def age(mode="FG_NORMAL", **options):
    return meaning(id_feature("user_id"), raw_feature("age", **options), mode=mode)


def differs(place, saved, current):
    return f"{place} differs: {saved} in the checkpoint, {current} in this run file"


SAME = {
    "defaults that are written": (
        user(),
        user(pooling="sum", separator="\x1d", default_value="", weighted=False, value_dim=0),
    ),
    "how a table begins and moves": (user(), user(init_fn="nn.init.ones_", trainable=False)),
    "a mode by its old name": (meaning(), meaning(mode="FG_NONE", fg_encoded=False, fg_threads=0)),
    "a feature that no group uses": (
        meaning(),
        meaning(id_feature("user_id"), raw_feature("age"), raw_feature("price")),
    ),
    "the order of features in the file": (meaning(), meaning(raw_feature("age"), id_feature("user_id"))),
    "what encoded columns do not need": (
        age("FG_NONE"),
        age("FG_NONE", expression="user:years", normalizer="method=minmax,min=0,max=9", default_value="7"),
    ),
}

DIFFERENT = {
    "vocab_list": (
        words("red", "green"),
        words("green", "red"),
        differs("feature 'user_id': vocab_list[0]", '"red"', '"green"'),
    ),
    "hashes in as many rows": (
        user(),
        user(num_buckets=None, hash_bucket_size=10),
        differs("feature 'user_id': hash_bucket_size", "null", "10"),
    ),
    "kind": (
        meaning(),
        meaning(raw_feature("user_id", boundaries=[1.0], embedding_dim=4), raw_feature("age")),
        differs("feature 'user_id': kind", '"id_feature"', '"raw_feature"'),
    ),
    "mode": (meaning(), meaning(mode="FG_NONE"), differs("data_config.fg_mode", '"FG_NORMAL"', '"FG_NONE"')),
    "a feature less": (
        meaning(),
        meaning(names=("user_id",)),
        "feature 'age' is in the checkpoint, but not in this run file",
    ),
    "long formulas": (
        age(normalizer="method=expression,expr=" + "x+" * 50 + "1"),
        age(normalizer="method=expression,expr=" + "x+" * 50 + "2"),
        differs(
            "feature 'age': normalizer",
            '...x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+1"',
            '...x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+2"',
        ),
    ),
}


@pytest.mark.parametrize(("saved", "current"), SAME.values(), ids=SAME.keys())
def test_what_means_the_same(saved, current):
    assert list(differences(saved, current)) == []
    assert json.loads(json.dumps(saved)) == saved


@pytest.mark.parametrize(("saved", "current", "difference"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_what_means_something_else(saved, current, difference):
    assert next(differences(saved, current)) == difference
