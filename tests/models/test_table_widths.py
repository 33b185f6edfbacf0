"""Tables whose width is not a multiple of 4 are stored wider, and nothing but that changes."""

import pytest
import torch

from penstock.distributed.sharding import shard
from penstock.distributed.state import model_state
from penstock.models.embeddings import EmbeddingGroup
from penstock.models.sections.groups import FeatureGroupConfig
from penstock.models.table_plan import plan_tables
from penstock.optim.dense import set_learning_rate
from penstock.optim.sections import SparseOptimizer
from penstock.optim.sparse import sparse_optimizer
from penstock.runtime.world import World
from penstock.tensors.batch import BASE, Batch
from tests.models.small_data import id_feature, sparse

WIDTH = 6
IDS = {"item": [[1], [2], [1]], "past": [[3, 4], [], [3]]}
GROUPS = [
    {"group_name": "deep", "feature_names": ["item", "past"]},
    {"group_name": "past", "group_type": "SEQUENCE", "feature_names": ["past"]},
]


def narrow(**options):
    """Two tables of width 6: one of bags, one that a sequence reads."""
    features = [id_feature("item", dim=WIDTH), id_feature("past", dim=WIDTH, sequence=True)]
    configs = [FeatureGroupConfig.model_validate(group) for group in GROUPS]
    torch.manual_seed(0)
    return EmbeddingGroup(plan_tables(configs, features), **options)


def loss_of(groups):
    weights = (torch.arange(2 * WIDTH, dtype=torch.float32) - 4) / 10
    return ((groups["deep"] - 1) * weights).square().sum() + groups["past.sequence"].square().sum()


def test_groups_have_the_true_width_and_checkpoints_too():
    groups = narrow()
    output = groups(Batch(sparse_features={BASE: sparse(IDS)}))

    assert {name: value.shape[-1] for name, value in output.items() if value.dim() > 1} == {
        "deep": 12,
        "past.sequence": 6,
    }
    assert {tuple(table.shape) for table in model_state(groups).values()} == {(10, 6)}
    assert all((table[:, WIDTH:] == 0).all() and table[:, :WIDTH].all() for table in groups.parameters())


def row_wise_adagrad(table, state, lr):
    state += table.grad.square().mean(dim=1)
    touched = table.grad.abs().sum(dim=1) > 0
    table.data[touched] -= lr * table.grad[touched] / (state[touched].sqrt() + 1e-8)[:, None]


@pytest.mark.parametrize("name", ["sgd", "adagrad", "rowwise_adagrad", "adam"])
def test_tables_move_as_if_they_were_stored_as_wide_as_they_are(one_process, name):
    """Against tables of 6 columns in plain torch; the rate changes on the way, as schedules do it."""
    optimizer = sparse_optimizer(SparseOptimizer.model_validate({f"{name}_optimizer": {"lr": 0.1}}))
    sharded = shard(narrow(device="meta"), optimizer, World())
    held = {name.split(".")[-2]: each for name, each in model_state(sharded).items()}
    tables = [held[name].local_shards()[0].tensor for name in ("item", "past")]
    item, past = (table.clone().requires_grad_() for table in tables)
    state = [torch.zeros(10), torch.zeros(10)]
    classes = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam}
    plain = classes[name]([item, past], lr=0.1) if name in classes else None
    for rate in (0.1, 0.1, 0.02):
        set_learning_rate(sharded.fused_optimizer, rate)
        loss_of(sharded(Batch(sparse_features={BASE: sparse(IDS)}))).backward()
        pooled = torch.stack([past[3] + past[4], past[3] * 0, past[3]])
        steps = torch.stack([past[3], past[4], past[3]])
        deep = torch.cat([item[torch.tensor([1, 2, 1])], pooled], dim=1)
        loss_of({"deep": deep, "past.sequence": steps}).backward()
        if plain is None:
            for table, own in zip((item, past), state, strict=True):
                row_wise_adagrad(table, own, rate)
        else:
            for group in plain.param_groups:
                group["lr"] = rate
            if name == "adam":
                item.grad, past.grad = item.grad.to_sparse(1), past.grad.to_sparse(1)
            plain.step()
        item.grad = past.grad = None

    for table, own in zip(tables, (item, past), strict=True):
        torch.testing.assert_close(table, own.detach(), rtol=1e-5, atol=1e-6)
