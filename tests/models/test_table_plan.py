"""Which tables feature groups need, who reads them, and how they start."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.models.sections.groups import FeatureGroupConfig
from penstock.models.table_plan import INITIALIZERS, parse_initializer, plan_tables
from tests.models.small_data import id_feature


def test_features_share_a_table_by_its_name_and_one_in_two_groups_is_entered_once():
    features = [id_feature("a", table="ids"), id_feature("b", table="ids")]

    groups = [
        FeatureGroupConfig(group_name="deep", feature_names=["a", "b"]),
        FeatureGroupConfig(group_name="fm", feature_names=["b"]),
    ]

    assert plan_tables(groups, features).tables["ids"].features == ("a", "b")


def test_a_call_with_numbers():
    table = parse_initializer("nn.init.uniform_,a=-0.01,b=0.01", "init_fn")(torch.empty(100, 10))

    assert -0.01 <= table.min() < -0.009
    assert 0.009 < table.max() <= 0.01


@pytest.mark.parametrize(
    "text", ["nn.init.constant_,val=2", "torch.nn.init.constant_, val = 2.0", "constant_,val=2e0"]
)
def test_ways_of_writing_the_same(text):
    assert parse_initializer(text, "init_fn")(torch.empty(2, 2)).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("name", sorted(set(INITIALIZERS) - {"constant_"}))
def test_every_name_works_without_arguments(name):
    assert torch.isfinite(
        parse_initializer(f"nn.init.{name}", "init_fn")(torch.full((3, 4), torch.nan))
    ).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "nn.init.unifrom_,a=1",
            "init_fn: 'nn.init.unifrom_' is not an initialiser; did you mean 'uniform_'?",
        ),
        (
            "__import__('os').abort()",
            "init_fn: '__import__('os').abort()' is not an initialiser; known: constant_",
        ),
        ("nn.init.uniform_,c=1", "init_fn: uniform_ has no argument 'c'; write nn.init.uniform_,a=...,b=..."),
        ("nn.init.uniform_,a=__import__('os')", "init_fn: a of uniform_ is '__import__('os')', not a number"),
        ("nn.init.uniform_,a=True", "init_fn: a of uniform_ is 'True', not a number"),
    ],
)
def test_anything_else_is_refused(text, problem):
    with pytest.raises(ConfigError) as caught:
        parse_initializer(text, "init_fn")

    assert str(caught.value).startswith(problem)
