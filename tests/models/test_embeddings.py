"""Feature groups become tensors: which columns stand where, and which tables are shared."""

import pytest
import torch
from torchrec import KeyedTensor

from penstock.config.errors import ConfigError
from penstock.distributed.sharding import shard
from penstock.models.embeddings import EmbeddingGroup
from penstock.models.sections.groups import FeatureGroupConfig
from penstock.models.table_plan import INITIALIZERS, parse_initializer, plan_tables
from penstock.optim.sections import SparseOptimizer
from penstock.optim.sparse import sparse_optimizer
from penstock.runtime.world import World
from penstock.tensors.batch import BASE, Batch
from tests.models.small_data import dense_feature, id_feature, sparse


def embedding_group(features, device=None, **groups):
    """Groups by name: deep=[...] is DEEP, wide=[...] is WIDE. Row r of a table of width d holds r, ..., r."""
    configs = [
        FeatureGroupConfig(
            group_name=name, feature_names=names, group_type="WIDE" if name == "wide" else "DEEP"
        )
        for name, names in groups.items()
    ]
    module = EmbeddingGroup(plan_tables(configs, features), device)
    if device is None:
        fill(module)
    return module


def fill(module):
    for table in module.parameters():
        with torch.no_grad():
            table.copy_(torch.arange(len(table), dtype=torch.float32)[:, None].expand_as(table))


def values(module, ids=None, weighted=None):
    """What each group holds, with one number for each feature (all tables are 4 wide, with equal columns)."""
    batch = Batch(
        sparse_features={} if ids is None else {BASE: ids},
        weighted_sparse_features={} if weighted is None else {BASE: weighted},
    )
    return {name: columns[:, ::4].tolist() for name, columns in module(batch).items()}


def test_features_stand_side_by_side_in_the_order_of_the_group():
    features = [id_feature("a"), dense_feature("x", 2), id_feature("b", dim=8)]
    module = embedding_group(features, deep=["b", "x", "a"])
    batch = Batch(
        sparse_features={BASE: sparse({"a": [[1, 2], []], "b": [[3], [4]]})},
        dense_features={BASE: KeyedTensor(["x"], [2], torch.tensor([[0.5, 0.75], [0.25, 0.0]]))},
    )

    first, second = module(batch)["deep"].tolist()
    assert first == [3] * 8 + [0.5, 0.75] + [3] * 4
    assert second == [4] * 8 + [0.25, 0.0] + [0] * 4
    assert module.widths["deep"] == 14


def test_ids_are_joined_by_sum_or_mean_and_weighted_ones_by_their_weights():
    module = embedding_group(
        [id_feature("a", pooling="mean"), id_feature("b"), id_feature("c", weighted=True)],
        deep=["a", "b", "c"],
    )
    ids = sparse({"a": [[1, 2]], "b": [[4]]})

    weighted = sparse({"c": [[1, 2]]}, weights={"c": [[0.5, 1.5]]})

    assert values(module, ids, weighted) == {"deep": [[1.5, 4.0, 3.5]]}


def test_a_wide_group_has_tables_of_its_own_that_start_at_zero():
    module = embedding_group([id_feature("a", num_rows=200, dim=8)], deep=["a"], wide=["a"])
    fresh = EmbeddingGroup(module.plan)

    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {
        "tables.embedding_bags.a.weight": (200, 8),
        "tables.embedding_bags.a_wide.weight": (200, 4),
    }
    assert fresh.tables.embedding_bags["a_wide"].weight.abs().max() == 0
    assert fresh.tables.embedding_bags["a"].weight.std().item() == pytest.approx(0.01, rel=0.1)
    output = module(Batch(sparse_features={BASE: sparse({"a": [[5]]})}))
    assert {name: value.tolist() for name, value in output.items()} == {"deep": [[5] * 8], "wide": [[5] * 4]}


def test_sharded_it_gives_the_same_and_frozen_tables_do_not_move(one_process):
    ones = {"init_fn": "nn.init.ones_"}
    features = [
        id_feature("a", pooling="mean", **ones),
        id_feature("b", weighted=True, **ones),
        id_feature("c", trainable=False, **ones),
    ]
    module = embedding_group(features, device="meta", deep=["c", "a", "b"], wide=["a", "b"])
    sgd = sparse_optimizer(SparseOptimizer.model_validate({"sgd_optimizer": {"lr": 0.5}}))
    sharded = shard(module, sgd, World())
    ids = sparse({"a": [[1, 2]], "c": [[3]]})
    weighted = sparse({"b": [[1, 2]]}, weights={"b": [[0.5, 2.0]]})

    assert values(sharded, ids, weighted) == {"deep": [[1.0, 1.0, 2.5]], "wide": [[0.0, 0.0]]}
    batch = Batch(sparse_features={BASE: ids}, weighted_sparse_features={BASE: weighted})
    sharded(batch)["deep"].sum().backward()

    moved = [1.0, (0.75 + 0.75) / 2, 0.5 * (1 - 0.25) + 2.0 * (1 - 1.0)]
    assert values(sharded, ids, weighted) == {"deep": [moved], "wide": [[0.0, 0.0]]}


def test_initialisers_by_name_with_numbers_and_without():
    for text in ("nn.init.constant_,val=2", "torch.nn.init.constant_, val = 2.0", "constant_,val=2e0"):
        assert parse_initializer(text, "init_fn")(torch.empty(2, 2)).tolist() == [[2, 2], [2, 2]]
    for name in set(INITIALIZERS) - {"constant_"}:
        table = parse_initializer(f"nn.init.{name}", "init_fn")(torch.full((3, 4), torch.nan))
        assert torch.isfinite(table).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "nn.init.unifrom_,a=1",
            "init_fn: 'nn.init.unifrom_' is not an initialiser; did you mean 'uniform_'?",
        ),
        ("nn.init.uniform_,c=1", "init_fn: uniform_ has no argument 'c'; write nn.init.uniform_,a=...,b=..."),
        ("nn.init.uniform_,a=__import__('os')", "init_fn: a of uniform_ is '__import__('os')', not a number"),
    ],
)
def test_anything_else_is_refused(text, problem):
    with pytest.raises(ConfigError) as caught:
        parse_initializer(text, "init_fn")

    assert str(caught.value).startswith(problem)
