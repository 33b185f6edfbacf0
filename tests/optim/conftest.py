"""A table of ones, sharded over one process."""

import pytest
import torch
import torch.distributed
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology


@pytest.fixture(scope="package", autouse=True)
def one_process():
    """A process group of one, without a port."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


class OneTable:
    """The table `table` of ones (2 x 4), read by the feature `id`."""

    def __init__(self):
        table = EmbeddingBagConfig(
            name="table", num_embeddings=2, embedding_dim=4, feature_names=["id"], init_fn=torch.nn.init.ones_
        )
        self.module = EmbeddingBagCollection([table], device=torch.device("meta"))

    def shard(self):
        """Hands the table to torchrec; after that it can be looked up and trained."""
        sharders = [EmbeddingBagCollectionSharder()]
        constraints = {"table": ParameterConstraints(sharding_types=["table_wise"])}
        planner = EmbeddingShardingPlanner(
            Topology(world_size=1, compute_device="cpu"), constraints=constraints
        )
        self.module = DistributedModelParallel(
            self.module,
            device=torch.device("cpu"),
            plan=planner.plan(self.module, sharders),
            sharders=sharders,
        )

    def step(self, gradient):
        """Looks row 0 up and gives it this gradient."""
        row = self.module(KeyedJaggedTensor(["id"], torch.tensor([0]), lengths=torch.tensor([1]))).values()
        (row * torch.tensor(gradient)).sum().backward()

    def row(self):
        """Row 0 as it is now."""
        [table] = self.module.state_dict().values()
        return table.local_shards()[0].tensor[0].tolist()


@pytest.fixture
def one_table():
    return OneTable()
