"""A table of ones, sharded over one process."""

import pytest
import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor

from penstock.distributed.groups import process_group
from penstock.distributed.sharding import shard
from penstock.runtime.world import World


class OneTable:
    """The table `table` of ones (2 x 4), read by the feature `id`."""

    def __init__(self):
        table = EmbeddingBagConfig(
            name="table", num_embeddings=2, embedding_dim=4, feature_names=["id"], init_fn=torch.nn.init.ones_
        )
        self.module = EmbeddingBagCollection([table], device=torch.device("meta"))

    def freeze(self):
        self.module.requires_grad_(False)

    def shard(self, optimizer):
        """Hands the table to torchrec; after that it can be looked up and trained."""
        self.module = shard(self.module, optimizer, World())

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
    with process_group(World()):
        yield OneTable()
