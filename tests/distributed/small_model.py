"""A small model with embedding tables, its batches, and a loop, for the tests of this folder."""

from dataclasses import dataclass

import torch
import torchrec
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.keyed import KeyedOptimizerWrapper

from penstock.distributed.sharding import dense_parameters, shard
from penstock.distributed.state import training_state
from penstock.optim.sparse import RowAdam
from penstock.runtime.world import World

NUM_TABLES, NUM_ROWS_OF_TABLE, DIMENSION, BATCH_ROWS = 3, 50, 4, 16
FEATURES = [f"feature_{index}" for index in range(NUM_TABLES)]
DENSE = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.01),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, dampening=0.3),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "counting": lambda parameters: Counting(parameters, {"lr": 0.1}),
}
SPARSE = {
    "adam": (RowAdam, {"lr": 0.1}),
    "adagrad": (torchrec.optim.Adagrad, {"lr": 0.1}),
    "rowwise_adagrad": (torchrec.optim.RowWiseAdagrad, {"lr": 0.1}),
    "sgd": (torchrec.optim.SGD, {"lr": 0.1}),
}


class Counting(torch.optim.Optimizer):
    """Steps that become smaller; what they are counted by is a number, as in many optimizers outside of torch."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    state = self.state[weight]
                    state["step"], state["scale"] = state.get("step", 0) + 1, state.get("scale", 1.0) / 2
                    weight.sub_(weight.grad, alpha=group["lr"] / state["step"] * state["scale"])


class SmallModel(torch.nn.Module):
    def __init__(self, frozen: str = "") -> None:
        super().__init__()
        tables = [
            torchrec.EmbeddingBagConfig(
                name=f"table_{feature}",
                num_embeddings=NUM_ROWS_OF_TABLE,
                embedding_dim=DIMENSION,
                feature_names=[feature],
            )
            for feature in FEATURES
        ]
        self.tables = torchrec.EmbeddingBagCollection(tables=tables)
        self.norm = torch.nn.BatchNorm1d(NUM_TABLES * DIMENSION)
        self.output = torch.nn.Linear(NUM_TABLES * DIMENSION, 1)
        self.never_used = torch.nn.Parameter(torch.ones(2))
        if frozen:
            self.tables.embedding_bags[f"table_{frozen}"].weight.requires_grad_(False)

    def forward(self, ids: torchrec.KeyedJaggedTensor) -> torch.Tensor:
        pooled = self.tables(ids)
        return self.output(self.norm(torch.cat([pooled[feature] for feature in FEATURES], dim=1))).squeeze(1)


def batch(step: int, rank: int = 0) -> tuple[torchrec.KeyedJaggedTensor, torch.Tensor]:
    """One to three ids per row and feature, and a label; the same for the same step and rank."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    lengths = torch.randint(1, 4, (NUM_TABLES * BATCH_ROWS,), generator=generator)
    values = torch.randint(0, NUM_ROWS_OF_TABLE, (int(lengths.sum()),), generator=generator)
    labels = torch.rand(BATCH_ROWS, generator=generator).round()
    return torchrec.KeyedJaggedTensor(keys=FEATURES, values=values, lengths=lengths), labels


@dataclass
class Training:
    """A sharded model with its optimizer; `run` trains on the batches of some steps."""

    model: DistributedModelParallel
    optimizer: KeyedOptimizerWrapper
    world: World

    @classmethod
    def start(cls, sparse: str, dense: str, world: World | None = None, frozen: str = "") -> "Training":
        world = world or World()
        torch.manual_seed(7)
        model = shard(SmallModel(frozen), (SPARSE[sparse][0], dict(SPARSE[sparse][1])), world)
        return cls(model, KeyedOptimizerWrapper(dense_parameters(model), DENSE[dense]), world)

    def run(self, steps: range) -> list[float]:
        losses = []
        for step in steps:
            ids, labels = batch(step, self.world.rank)
            self.optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(self.model(ids), labels)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses

    def state(self) -> dict[str, torch.Tensor]:
        """A copy of every tensor that training changes; sharded ones must be whole on this rank."""
        return {
            name: local(tensor).clone() for name, tensor in training_state(self.model, self.optimizer).items()
        }


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a tensor that is whole on this rank, sharded or not."""
    if not hasattr(tensor, "local_shards"):
        return tensor
    (only,) = tensor.local_shards()
    return only.tensor
