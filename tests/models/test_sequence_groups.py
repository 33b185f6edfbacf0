"""Sequences in groups: looked up step by step, in tables that pooled features may share."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional
from torchrec import JaggedTensor, KeyedTensor

from penstock.config.errors import ConfigError, DataError
from penstock.distributed.sharding import shard
from penstock.features.sections import SequenceSpec
from penstock.features.sections.tables import AutoDisEmbedding, MLPEmbedding
from penstock.models.embeddings import EmbeddingGroup
from penstock.models.sections.groups import FeatureGroupConfig
from penstock.models.table_plan import plan_tables
from penstock.optim.sections import SparseOptimizer
from penstock.optim.sparse import sparse_optimizer
from penstock.runtime.world import World
from penstock.tensors.batch import BASE, Batch
from tests.models.small_data import dense_feature, id_feature, sparse

ITEM = id_feature("item", table="item_emb")
PAST = id_feature("past", table="item_emb", sequence=True)
IDS = sparse({"item": [[1], [2], [3]], "past": [[4, 5], [], [6, 7, 8]]})


def groups_of(features, *groups, device=None):
    torch.manual_seed(0)
    configs = [FeatureGroupConfig.model_validate(group) for group in groups]
    return EmbeddingGroup(plan_tables(configs, features), device)


def sequence(*names, kind="SEQUENCE", **options):
    return {"group_name": "clicks", "group_type": kind, "feature_names": names, **options}


def deep(*names, **options):
    return {"group_name": "deep", "feature_names": names, **options}


def rows_of(table, *ids):
    return functional.embedding(torch.tensor(ids, dtype=torch.int64), table)


def test_a_sequence_group_is_a_query_a_padded_sequence_and_lengths():
    groups = groups_of([ITEM, PAST], sequence("item", "past"), deep("past", "item"))
    [table] = groups.parameters()
    output = groups(Batch(sparse_features={BASE: IDS}))

    assert output["clicks.sequence_length"].tolist() == [2, 0, 3]
    torch.testing.assert_close(output["clicks.query"], rows_of(table, 1, 2, 3))
    padded = torch.stack(
        [functional.pad(rows_of(table, *ids), (0, 0, 0, 3 - len(ids))) for ids in ([4, 5], [], [6, 7, 8])]
    )
    torch.testing.assert_close(output["clicks.sequence"], padded)
    # The same table, pooled.
    torch.testing.assert_close(output["deep"], torch.cat([padded.sum(dim=1), rows_of(table, 1, 2, 3)], dim=1))
    assert groups.widths == {"deep": 8, "clicks.query": 4, "clicks.sequence": 4}


def test_gradients_of_a_shared_table_are_those_of_one_embedding():
    groups = groups_of([ITEM, PAST], sequence("item", "past"), deep("past", "item"))
    [table] = groups.parameters()
    output = groups(Batch(sparse_features={BASE: IDS}))
    sum((value.float() ** 2).sum() for value in output.values()).backward()

    reference = table.detach().clone().requires_grad_()
    item, past = rows_of(reference, 1, 2, 3), rows_of(reference, 4, 5, 6, 7, 8)
    pooled = torch.stack([past[:2].sum(dim=0), past[2:].sum(dim=0)])
    (2 * (item**2).sum() + (past**2).sum() + (pooled**2).sum()).backward()
    torch.testing.assert_close(table.grad, reference.grad)


def test_a_jagged_sequence_is_not_padded():
    groups = groups_of([PAST], sequence("past", kind="JAGGED_SEQUENCE"))
    [table] = groups.parameters()
    output = groups(Batch(sparse_features={BASE: IDS}))

    assert sorted(output) == ["clicks.sequence", "clicks.sequence_length"]
    torch.testing.assert_close(output["clicks.sequence"], rows_of(table, 4, 5, 6, 7, 8))


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_several_ids_of_a_step_are_pooled_and_numbers_stand_beside_them(pooling):
    tags = id_feature("tags", pooling=pooling, sequence=True)
    groups = groups_of([tags, dense_feature("age", 2, sequence=True)], sequence("tags", "age"))
    [table] = groups.parameters()
    ages = torch.rand(3, 2)
    batch = Batch(
        sparse_features={BASE: sparse({"tags": [[1, 2, 3], [4]]})},
        sequence_mulval_lengths={BASE: sparse({"tags": [[2, 1], [1]]})},
        sequence_dense_features={"age": JaggedTensor(ages, lengths=torch.tensor([2, 1]))},
    )
    output = groups(batch)

    first = getattr(rows_of(table, 1, 2), pooling)(dim=0)
    expected = torch.cat([torch.stack([first, *rows_of(table, 3, 4)]), ages], dim=1)
    torch.testing.assert_close(output["clicks.sequence"][0], expected[:2])
    torch.testing.assert_close(output["clicks.sequence"][1], functional.pad(expected[2:], (0, 0, 0, 1)))
    assert output["clicks.sequence_length"].tolist() == [2, 1]


def test_a_batch_without_any_step():
    groups = groups_of([ITEM, PAST], deep("item", **ENCODED))
    batch = Batch(sparse_features={BASE: sparse({"item": [[1], [2]], "past": [[], []]})})

    assert groups(batch)["deep"][:, 4:].tolist() == [[0.0] * 4] * 2


ENCODED = {
    "sequence_groups": [{"feature_names": ["item", "past"]}],
    "sequence_encoders": [{"din_encoder": {"attn_mlp": {"hidden_units": [4]}}}],
}


def test_encoders_stand_behind_the_features_of_their_group():
    groups = groups_of([ITEM, PAST], deep("item", **ENCODED), sequence("item", "past"))
    output = groups(Batch(sparse_features={BASE: IDS}))

    encoded = groups.encoders["deep"]["din_encoder"](
        output["clicks.query"], output["clicks.sequence"], output["clicks.sequence_length"]
    )
    torch.testing.assert_close(output["deep"], torch.cat([output["clicks.query"], encoded], dim=1))
    assert groups.widths["deep"] == 8


def test_a_suffix_gives_a_group_its_own_tables():
    groups = groups_of([ITEM, PAST], deep("item"), sequence("item", "past", embedding_name_suffix="din"))

    assert [name for name, _ in groups.named_parameters()] == [
        "tables.embedding_bags.item_emb.weight",
        "step_tables.dim4.embeddings.item_emb_din.weight",
    ]


def test_sequences_of_one_group_have_the_same_steps():
    other = id_feature("other", sequence=True)
    groups = groups_of([PAST, other], sequence("past", "other"))

    with pytest.raises(DataError) as caught:
        groups(Batch(sparse_features={BASE: sparse({"past": [[1], [2, 3]], "other": [[1], [2]]})}))
    assert str(caught.value) == (
        "row 1 of a batch: 'other' has 1 steps, 'past' has 2; features of one sequence group have the same steps"
    )


def test_the_default_value_of_an_empty_sequence_is_no_step_where_another_feature_has_none():
    groups = groups_of([PAST, dense_feature("age", sequence=True)], sequence("past", "age"))
    [table] = groups.parameters()
    ages = JaggedTensor(torch.tensor([[0.0], [0.5], [0.75]]), lengths=torch.tensor([1, 2]))
    output = groups(
        Batch(sparse_features={BASE: sparse({"past": [[], [2, 3]]})}, sequence_dense_features={"age": ages})
    )

    assert output["clicks.sequence_length"].tolist() == [0, 2]
    assert output["clicks.sequence"][:, :, 4].tolist() == [[0, 0], [0.5, 0.75]]
    torch.testing.assert_close(output["clicks.sequence"][1, :, :4], rows_of(table, 2, 3))


def test_weighted_ids_share_no_table_with_others():
    with pytest.raises(ConfigError, match="weighted: is true, but 'item' shares the table 'item_emb'"):
        groups_of([ITEM, id_feature("seen", table="item_emb", weighted=True)], deep("item", "seen"))


def test_a_table_needs_a_name_that_torch_takes():
    with pytest.raises(ConfigError) as caught:
        groups_of([id_feature("item", table="items")], deep("item"))
    assert str(caught.value) == (
        "feature_configs: feature 'item': embedding_name: 'items' cannot be the name of a torch module; "
        "choose another, such as items_emb"
    )


@pytest.mark.parametrize("name", ["sgd", "adagrad", "rowwise_adagrad", "adam"])
@pytest.mark.parametrize("data_type", ["FP32", "FP16"])
def test_sharded_tables_of_sequences_move_as_pooled_ones_do(one_process, name, data_type):
    """The same lookups, pooled by a collection of bags, and step by step: the same table after two steps."""
    optimizer = sparse_optimizer(SparseOptimizer.model_validate({f"{name}_optimizer": {"lr": 0.1}}))
    options = {"table": "item_emb", "init_fn": "nn.init.ones_", "data_type": data_type}
    past, bag = id_feature("past", sequence=True, **options), id_feature("past", **options)
    after = []
    for group in (
        groups_of([past], sequence("past"), device="meta"),
        groups_of([bag], deep("past"), device="meta"),
    ):
        sharded = shard(group, optimizer, World())
        for _ in range(2):
            [first, *_] = sharded(Batch(sparse_features={BASE: IDS})).values()
            (first.reshape(3, -1, 4).sum(dim=1) ** 2).sum().backward()
        [table] = sharded.state_dict().values()
        after.append(table.local_shards()[0].tensor)

    assert after[0].dtype is (torch.float16 if data_type == "FP16" else torch.float32)
    assert (after[0][4:9] != 1).all()
    torch.testing.assert_close(after[0], after[1])


def test_frozen_tables_of_sequences_do_not_move(one_process):
    frozen = id_feature("past", sequence=True, trainable=False, init_fn="nn.init.ones_")
    adagrad = sparse_optimizer(SparseOptimizer.model_validate({"adagrad_optimizer": {"lr": 0.5}}))
    sharded = shard(groups_of([frozen], sequence("past"), device="meta"), adagrad, World())
    batch = Batch(sparse_features={BASE: IDS})
    sharded(batch)["clicks.sequence"].sum().backward()

    assert sharded(batch)["clicks.sequence"].max() == 1


def test_groups_that_share_features_share_their_columns():
    """Columns that follow each other in the lookup and in a group are not copied, sharded or not."""
    features = [id_feature("a"), id_feature("b"), dense_feature("x")]
    fm, same = ({**deep("a", "b"), "group_name": name} for name in ("fm", "same"))
    groups = groups_of(features, fm, deep("x", "a", "b"), same, {**deep("b", "a"), "group_name": "turned"})
    numbers = KeyedTensor(["x"], [1], torch.rand(1, 1))
    batch = Batch(sparse_features={BASE: sparse({"a": [[1]], "b": [[2]]})}, dense_features={BASE: numbers})
    output = groups(batch)

    a, b = (groups.tables.embedding_bags[name].weight[row] for name, row in (("a", 1), ("b", 2)))
    assert output["fm"].data_ptr() == output["same"].data_ptr()
    torch.testing.assert_close(output["fm"][0], torch.cat([a, b]))
    torch.testing.assert_close(output["turned"][0], torch.cat([b, a]))
    torch.testing.assert_close(output["deep"][0], torch.cat([numbers["x"][0], a, b]))


def test_numbers_become_vectors_by_a_linear_layer():
    feature = dense_feature("x", 2, dense_embedding=MLPEmbedding(), embedding_dim=3)
    groups = groups_of([feature], deep("x"))
    network = groups.number_embeddings["x"]
    x = torch.rand(5, 2)
    output = groups(Batch(dense_features={BASE: KeyedTensor(["x"], [2], x)}))["deep"]

    assert groups.widths["deep"] == 6
    expected = [x[:, i : i + 1] * network.weight[i] + network.bias[i] for i in range(2)]
    torch.testing.assert_close(output, torch.cat(expected, dim=1))


def test_numbers_become_mixtures_of_vectors_by_autodis():
    section = AutoDisEmbedding(num_channels=5, temperature=0.5, keep_prob=0.7)
    groups = groups_of([dense_feature("x", dense_embedding=section, embedding_dim=3)], deep("x"))
    network = groups.number_embeddings["x"]
    x = torch.randn(6, 1)
    output = groups(Batch(dense_features={BASE: KeyedTensor(["x"], [1], x)}))["deep"]

    hidden = functional.leaky_relu(x @ network.first)
    weights = torch.softmax((hidden @ network.second[0] + 0.7 * hidden) / 0.5, dim=1)
    torch.testing.assert_close(output, weights @ network.vectors[0])
    output.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in network.parameters())


def test_the_memory_plan_counts_the_steps_of_sequences():
    none, short, long = (
        groups_of([replace(PAST, sequence=SequenceSpec(";", steps))], sequence("past")).row_use(0).kept
        for steps in (1, 11, 101)
    )

    assert short - none == 2 * 4 * 10
    assert long - short == 2 * 4 * 90
