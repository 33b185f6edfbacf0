"""Adam on the rows that a lookup touched equals its formula; the other rows stand still."""

from dataclasses import dataclass, field

import pytest
import torch
from torch.nn import functional
from torchrec import (
    EmbeddingBagCollection,
    EmbeddingBagConfig,
    EmbeddingCollection,
    EmbeddingConfig,
    KeyedJaggedTensor,
    PoolingType,
)

from penstock.distributed.groups import process_group
from penstock.distributed.sharding import dense_parameters, shard
from penstock.optim.dense import set_learning_rate
from penstock.optim.sections import SparseOptimizer
from penstock.optim.sparse import RowAdam, sparse_optimizer
from penstock.runtime.world import World

NUM_ROWS, WIDTH, BATCH_ROWS = 20, 4, 8
FEATURES = ["user", "item", "other_item"]
FEATURES_OF_TABLE = {"user_table": ["user"], "item_table": ["item", "other_item"]}


@dataclass
class Reference:
    """Adam as written in books, on whole tables with dense gradients, applied where there was an id."""

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 0.0
    steps: int = 0
    moments: dict[str, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def step(self, tables, touched):
        self.steps += 1
        for name, table in tables.items():
            rows, g = touched[name], table.grad
            m, v = self.moments.setdefault(name, (torch.zeros_like(table), torch.zeros_like(table)))
            m[rows] = self.beta1 * m[rows] + (1 - self.beta1) * g[rows]
            v[rows] = self.beta2 * v[rows] + (1 - self.beta2) * g[rows] ** 2
            m_hat, v_hat = m[rows] / (1 - self.beta1**self.steps), v[rows] / (1 - self.beta2**self.steps)
            with torch.no_grad():
                table[rows] -= self.lr * (m_hat / (v_hat.sqrt() + 1e-8) + self.weight_decay * table[rows])
            table.grad = None


def collection(pooling=PoolingType.SUM, weighted=False):
    """Two tables of ones on the meta device, one of them read by two features; pooling None: a vector for each id."""
    shape = {"num_embeddings": NUM_ROWS, "embedding_dim": WIDTH, "init_fn": torch.nn.init.ones_}
    tables = FEATURES_OF_TABLE.items()
    if pooling is None:
        configs = [EmbeddingConfig(name=name, feature_names=names, **shape) for name, names in tables]
        return EmbeddingCollection(tables=configs, device=torch.device("meta"))
    configs = [
        EmbeddingBagConfig(name=name, feature_names=names, pooling=pooling, **shape) for name, names in tables
    ]
    return EmbeddingBagCollection(tables=configs, device=torch.device("meta"), is_weighted=weighted)


def batch(step, weighted=False):
    """Up to three ids for each row and feature, some more than once, some rows without any."""
    generator = torch.Generator().manual_seed(step)
    lengths = torch.randint(0, 4, (len(FEATURES) * BATCH_ROWS,), generator=generator)
    ids = torch.randint(0, 10, (int(lengths.sum()),), generator=generator)
    weights = torch.rand(ids.numel(), generator=generator) if weighted else None
    return KeyedJaggedTensor(FEATURES, ids, lengths=lengths, weights=weights)


def expected_vectors(tables, ids, pooling):
    """What a lookup gives, by plain torch."""
    vectors = {}
    for table, features in FEATURES_OF_TABLE.items():
        for feature in features:
            rows, weights = tables[table], ids[feature].weights_or_none()
            if pooling is None:
                vectors[feature] = rows[ids[feature].values()]
            else:
                vectors[feature] = functional.embedding_bag(
                    ids[feature].values(),
                    rows,
                    ids[feature].offsets()[:-1],
                    mode=pooling.name.lower(),
                    per_sample_weights=weights,
                )
    return vectors


def loss_of(vectors):
    """Another gradient for each number."""
    return sum(
        (vectors[name] ** 2 * (1 + torch.arange(WIDTH))).sum() * (i + 1) for i, name in enumerate(FEATURES)
    )


def learn(module, step, pooling=PoolingType.SUM, weighted=False):
    """One backward pass, in which the tables move."""
    found = module(batch(step, weighted))
    loss_of({name: found[name].values() if pooling is None else found[name] for name in FEATURES}).backward()


def touched_rows(ids):
    return {
        table: torch.cat([ids[feature].values() for feature in features]).unique()
        for table, features in FEATURES_OF_TABLE.items()
    }


def tables_of(module):
    return {
        name.split(".")[-2]: table.local_shards()[0].tensor for name, table in module.state_dict().items()
    }


def sharded(tables=None, **options):
    """The tables (by default summed), moved by Adam."""
    section = SparseOptimizer.model_validate({"adam_optimizer": {"lr": 0.1, **options}})
    return shard(tables or collection(), sparse_optimizer(section), World())


@pytest.fixture(autouse=True)
def group():
    with process_group(World()):
        yield


CASES = {
    "sum": (PoolingType.SUM, False),
    "mean": (PoolingType.MEAN, False),
    "weighted sum": (PoolingType.SUM, True),
    "sequence": (None, False),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "options", [{}, {"beta1": 0.5, "beta2": 0.9, "weight_decay": 0.1}], ids=["plain", "decay"]
)
def test_touched_rows_move_by_the_formula_and_the_others_not_at_all(case, options):
    pooling, weighted = CASES[case]
    module = sharded(collection(pooling, weighted), **options)
    tables = {name: torch.ones(NUM_ROWS, WIDTH, requires_grad=True) for name in FEATURES_OF_TABLE}
    reference = Reference(lr=0.1, **options)
    for step in range(5):
        ids = batch(step, weighted)
        learn(module, step, pooling, weighted)
        loss_of(expected_vectors(tables, ids, pooling)).backward()
        reference.step(tables, touched_rows(ids))

    for name, table in tables_of(module).items():
        torch.testing.assert_close(table, tables[name].detach(), rtol=1e-5, atol=1e-6)
        assert torch.equal(table[10:], torch.ones(10, WIDTH))


def test_without_a_gradient_nothing_moves_and_tables_belong_to_it_alone():
    module = sharded()
    with torch.no_grad():
        module(batch(0))

    assert all(torch.equal(table, torch.ones(NUM_ROWS, WIDTH)) for table in tables_of(module).values())
    assert dense_parameters(module) == {}
    assert [type(part) for _, part in module.fused_optimizer.optimizers] == [RowAdam]


def test_a_frozen_table_does_not_move_and_has_no_moments():
    tables = collection()
    tables.embedding_bags["user_table"].weight.requires_grad_(False)
    module = sharded(tables)
    set_learning_rate(module.fused_optimizer, 0.0)
    learn(module, 0)
    assert torch.equal(tables_of(module)["item_table"], torch.ones(NUM_ROWS, WIDTH))
    set_learning_rate(module.fused_optimizer, 0.25)  # in force at the very next step
    learn(module, 0)

    assert torch.equal(tables_of(module)["user_table"], torch.ones(NUM_ROWS, WIDTH))
    assert (1 - tables_of(module)["item_table"]).max().item() == pytest.approx(0.25, rel=1e-4)
    assert list(module.fused_optimizer.state_dict()["state"]) == ["embedding_bags.item_table.weight"]


def test_gradients_are_clipped_as_the_fused_kernels_do_it():
    """SGD shows what the kernel takes for the gradient: that of each bag, cut, then summed over the bags of a row."""
    clipping = {"gradient_clipping": True, "max_gradient": 0.5}
    sgd = SparseOptimizer.model_validate({"sgd_optimizer": {"lr": 1.0, **clipping}})
    fused = shard(collection(), sparse_optimizer(sgd), World())
    # After the first step of Adam with beta1 = 0 its first moment is the gradient.
    ours = sharded(beta1=0.0, **clipping)
    for module in (fused, ours):
        learn(module, 0)

    moments = ours.fused_optimizer.state_dict()["state"]["embedding_bags.item_table.weight"]["exp_avg"]
    torch.testing.assert_close(moments.local_shards()[0].tensor, 1 - tables_of(fused)["item_table"])
