import pytest
import torch
import torchrec

from penstock.distributed.groups import process_group
from penstock.distributed.sharding import dense_parameters, plan_tables, shard
from penstock.runtime.world import World
from tests.distributed.small_model import SmallModel, Training

TABLES = [f"table_feature_{index}" for index in range(3)]


@pytest.fixture(autouse=True)
def group():
    with process_group(World()):
        yield


def test_tables_move_in_backward_but_frozen_ones_and_the_rest_belongs_to_the_dense_optimizer():
    training = Training.start("adagrad", "adam", frozen="feature_1")
    before = training.state()
    training.run(range(3))
    after = training.state()

    dense = ["never_used", "norm.bias", "norm.weight", "output.bias", "output.weight"]
    assert sorted(dense_parameters(training.model)) == dense
    weights = [f"model.tables.embedding_bags.{table}.weight" for table in TABLES]
    assert [torch.equal(before[name], after[name]) for name in weights] == [False, True, False]


def test_a_model_without_tables_can_be_sharded_too():
    model = shard(torch.nn.Linear(2, 1), None, World())

    assert sorted(dense_parameters(model)) == ["bias", "weight"]


def test_tables_larger_than_any_host_are_planned_because_the_memory_plan_decides():
    config = torchrec.EmbeddingBagConfig(
        name="huge", num_embeddings=10**11, embedding_dim=64, feature_names=["a", "b"]
    )
    model = torchrec.EmbeddingBagCollection(tables=[config], device=torch.device("meta"))

    plan = plan_tables(model, World(), torch.device("cpu"))

    assert plan.plan[""]["huge"].sharding_type == "table_wise"


def test_two_ranks_share_the_tables():
    plan = plan_tables(SmallModel(), World(0, 2), torch.device("cpu"))

    assert {tuple(placed.ranks) for placed in plan.plan["tables"].values()} == {(0,), (1,)}
