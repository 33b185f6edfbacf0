"""Features, batches with a planted signal, and run-file sections, small enough to read."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torchrec import KeyedJaggedTensor, KeyedTensor

from penstock.distributed.sharding import dense_parameters, shard
from penstock.features.feature import TableSpec
from penstock.features.sections import SequenceSpec
from penstock.models import build_model
from penstock.models.model import TrainWrapper
from penstock.models.sections import ModelConfig
from penstock.optim.dense import dense_optimizers
from penstock.optim.sections import DenseOptimizer, SparseOptimizer
from penstock.optim.sparse import sparse_optimizer
from penstock.runtime.world import World
from penstock.tensors.batch import BASE, Batch

NUM_USERS, NUM_ITEMS = 50, 40


@dataclass
class FakeFeature:
    name: str
    table: TableSpec | None = None
    width: int = 0
    sequence: SequenceSpec | None = None
    dense_embedding: object = None
    embedding_dim: int = 0


def id_feature(name, num_rows=10, dim=4, **options):
    sequence = SequenceSpec(";") if options.pop("sequence", False) else None
    return FakeFeature(
        name, TableSpec(options.pop("table", name), num_rows, dim, **options), sequence=sequence
    )


def dense_feature(name, width=1, sequence=False, **options):
    return FakeFeature(name, None, width, SequenceSpec(";") if sequence else None, **options)


FEATURES = [
    id_feature("user", NUM_USERS, 8),
    id_feature("item", NUM_ITEMS, 8),
    dense_feature("age"),
    id_feature("past", NUM_ITEMS, 8, table="item", sequence=True),
]


def model_config(**changes):
    """DeepFM on user, item and age; other keys of model_config by name."""
    config = {
        "feature_groups": [
            {"group_name": "wide", "feature_names": ["user", "item"], "group_type": "WIDE"},
            {"group_name": "deep", "feature_names": ["user", "age", "item"], "group_type": "DEEP"},
        ],
        "losses": [{"binary_cross_entropy": {}}],
        "deepfm": {"deep": {"hidden_units": [16, 8]}},
    }
    return ModelConfig.model_validate(
        {key: value for key, value in (config | changes).items() if value is not None}
    )


def sparse(ids, weights=None):
    """Ids of each row by feature, as a KeyedJaggedTensor; with weights by feature, 1 for those not named."""
    lengths = [len(row) for rows in ids.values() for row in rows]
    values = [value for rows in ids.values() for row in rows for value in row]
    if weights is not None:
        ones = {name: [[1.0] * len(row) for row in rows] for name, rows in ids.items()}
        weights = torch.tensor([w for rows in (ones | weights).values() for row in rows for w in row])
    return KeyedJaggedTensor(
        list(ids), torch.tensor(values), lengths=torch.tensor(lengths, dtype=torch.int32), weights=weights
    )


def planted_batch(num_rows, seed):
    """Users like items near them, and grow milder with age. Gives the batch and the true logits."""
    world = np.random.default_rng(0)
    users, items = world.normal(size=(NUM_USERS, 4)), world.normal(size=(NUM_ITEMS, 4))
    generator = np.random.default_rng(seed)
    user, item = generator.integers(0, NUM_USERS, num_rows), generator.integers(0, NUM_ITEMS, num_rows)
    age = generator.normal(size=(num_rows, 1)).astype(np.float32)
    logits = (users[user] * items[item]).sum(axis=1) + users[user, 0] + items[item, 1] + age[:, 0]
    clicked = generator.random(num_rows) < 1 / (1 + np.exp(-logits))
    # A history that says nothing, of 0 to 3 items.
    steps = generator.integers(0, 4, num_rows)
    past = generator.integers(0, NUM_ITEMS, steps.sum())
    ids = KeyedJaggedTensor(
        ["item", "user", "past"],
        torch.from_numpy(np.concatenate([item, user, past])),
        lengths=torch.from_numpy(np.concatenate([np.ones(2 * num_rows), steps])).int(),
    )
    batch = Batch(
        sparse_features={BASE: ids},
        dense_features={BASE: KeyedTensor(["age"], [1], torch.from_numpy(age))},
        labels={
            "clicked": torch.from_numpy(clicked.astype(np.int64)),
            "logit": torch.from_numpy(logits).float(),
        },
        sample_weights={"importance": torch.from_numpy(generator.random(num_rows).astype(np.float32))},
    )
    return batch, logits


def tower(name, label="clicked", loss="binary_cross_entropy", **options):
    """A task tower with a small MLP."""
    return {
        "tower_name": name,
        "label_name": label,
        "mlp": {"hidden_units": [32, 16]},
        "losses": [{loss: {}}],
        **options,
    }


DEEP_GROUP = {"group_name": "deep", "feature_names": ["user", "age", "item"], "group_type": "DEEP"}


def multi_task(name, towers, pareto=False, **section):
    """model_config of a multi-task model on one group."""
    return ModelConfig.model_validate(
        {
            "feature_groups": [DEEP_GROUP],
            "use_pareto_loss_weight": pareto,
            name: {"task_towers": towers, **section},
        }
    )


def built(config=None, features=FEATURES, weights=(), **options):
    torch.manual_seed(0)
    return build_model(config or model_config(), features, ["clicked", "logit"], weights, **options)


@dataclass
class Training:
    """A sharded model and its optimizers, as a run would have them."""

    module: torch.nn.Module
    optimizer: torch.optim.Optimizer

    @classmethod
    def start(cls, model, sparse_lr=0.05, dense_lr=0.01, sparse_name="adagrad_optimizer"):
        fused = sparse_optimizer(SparseOptimizer.model_validate({sparse_name: {"lr": sparse_lr}}))
        module = shard(TrainWrapper(model), fused, World())
        adam = DenseOptimizer.model_validate({"adam_optimizer": {"lr": dense_lr}})
        return cls(module, dense_optimizers(adam, dense_parameters(module).items())[0])

    def step(self, batch):
        """One step; gives the loss before it."""
        self.optimizer.zero_grad()
        total, _ = self.module(batch)
        total.backward()
        self.optimizer.step()
        return total.item()


def assert_same_losses(plain, training, batch):
    """An unsharded model with the same optimizers (SGD and Adam, rate 0.1) has the same losses for two steps."""
    is_table = re.compile(r"embedding_bags|embeddings\.").search
    tables = [value for name, value in plain.named_parameters() if is_table(name)]
    others = [value for name, value in plain.named_parameters() if not is_table(name)]
    optimizers = [torch.optim.SGD(tables, lr=0.1), torch.optim.Adam(others, lr=0.1)]
    for _ in range(2):
        loss = TrainWrapper(plain)(batch)[0]
        assert training.step(batch) == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


def load(model, whole):
    """Copies the values of an unsharded model into a sharded one of one process."""
    for name, value in model.state_dict().items():
        shards = value.local_shards() if hasattr(value, "local_shards") else None
        (shards[0].tensor if shards else value).copy_(whole[name])
