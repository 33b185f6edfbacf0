"""Fused optimizers of embedding tables, through a sharded model of one process."""

import math

import pytest
import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor

from penstock.config.errors import ConfigError
from penstock.distributed.groups import process_group
from penstock.distributed.sharding import shard
from penstock.optim.dense import set_learning_rate
from penstock.optim.sections import SparseOptimizer
from penstock.optim.sparse import sparse_optimizer
from penstock.runtime.world import World


class OneTable:
    """The table `table` of ones (2 x 4), read by the feature `id`."""

    def __init__(self):
        table = EmbeddingBagConfig(
            name="table", num_embeddings=2, embedding_dim=4, feature_names=["id"], init_fn=torch.nn.init.ones_
        )
        self.module = EmbeddingBagCollection([table], device=torch.device("meta"))

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


def section(**optimizer):
    return SparseOptimizer.model_validate(optimizer)


def trained(table, steps, *, schedule=None, **optimizer):
    """The first two numbers of a row of ones after steps with a gradient of 1, 3, 0, 0."""
    table.shard(sparse_optimizer(section(**optimizer)))
    for step in range(steps):
        if schedule is not None:
            set_learning_rate(table.module.fused_optimizer, schedule[step])
        table.step([1.0, 3.0, 0.0, 0.0])
    return table.row()[:2]


@pytest.mark.parametrize(
    ("name", "steps", "expected"),
    [
        ("sgd_optimizer", 2, [0.8, 0.4]),
        ("adagrad_optimizer", 2, [1 - 0.1 * (1 + 1 / math.sqrt(2))] * 2),  # an accumulator for each number
        (
            "rowwise_adagrad_optimizer",
            1,
            [1 - 0.1 / math.sqrt(2.5), 1 - 0.3 / math.sqrt(2.5)],
        ),  # for each row
    ],
)
def test_tables_move_by_the_formula_of_their_optimizer(one_table, name, steps, expected):
    assert trained(one_table, steps, **{name: {"lr": 0.1}}) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["sgd_optimizer", "adagrad_optimizer", "rowwise_adagrad_optimizer"])
def test_gradients_are_clipped_in_the_kernel(one_table, name):
    clipped = {"lr": 0.1, "gradient_clipping": True, "max_gradient": 0.5}
    first, second = trained(one_table, 1, **{name: clipped})

    assert first == second < 1


@pytest.mark.parametrize(("is_frozen", "expected"), [(False, 1 - 0.11), (True, 1.0)])
def test_a_new_learning_rate_is_in_force_at_the_very_next_step_but_for_frozen_tables(
    one_table, is_frozen, expected
):
    if is_frozen:
        one_table.module.requires_grad_(False)

    assert trained(one_table, 3, schedule=[0.1, 0.01, 0.0], sgd_optimizer={"lr": 5.0})[0] == pytest.approx(
        expected
    )


def test_on_gpu_a_kernel_gets_its_settings_by_their_names():
    _, settings = sparse_optimizer(section(lars_sgd_optimizer={"lr": 0.1}), "cuda")

    assert settings == {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.0}


def test_the_accumulators_of_adagrad_start_where_the_run_file_says(one_table):
    adagrad = section(adagrad_optimizer={"lr": 0.1, "initial_accumulator_value": 3.0})
    one_table.shard(sparse_optimizer(adagrad))
    one_table.step([1.0, 1.0, 0.0, 0.0])

    assert one_table.row() == pytest.approx([0.95, 0.95, 1.0, 1.0])


REFUSED_ON_CPU = {
    "lamb_optimizer": "has a kernel on GPU alone; on CPU use adam_optimizer",
    "lars_sgd_optimizer": "has a kernel on GPU alone; on CPU use sgd_optimizer",
    "adadelta_optimizer": "no kernel updates embedding tables this way; use adagrad_optimizer",
}


@pytest.mark.parametrize("name", REFUSED_ON_CPU)
def test_what_no_kernel_of_the_device_does_is_refused_with_what_to_use_instead(name):
    with pytest.raises(ConfigError) as caught:
        sparse_optimizer(section(**{name: {}}))

    assert str(caught.value) == f"train_config.sparse_optimizer.{name}: {REFUSED_ON_CPU[name]}"
    on_gpu = list(section(**{name: {}}).problems("cuda"))
    assert on_gpu == ([] if "on GPU" in str(caught.value) else caught.value.problems)


@pytest.mark.parametrize(
    ("device", "mode", "problem"),
    [
        ("cpu", "L2", "the CPU kernel ignores it; remove it, or use adam_optimizer"),
        ("cuda", "L2", None),
        ("cuda", "NONE", "but weight_decay_mode NONE ignores it; set L2 or DECOUPLE, or remove it"),
    ],
)
def test_a_weight_decay_that_would_do_nothing_is_refused(device, mode, problem):
    decaying = section(rowwise_adagrad_optimizer={"weight_decay": 0.5, "weight_decay_mode": mode})
    messages = [found.message for found in decaying.problems(device)]

    assert [message.split(maxsplit=2)[-1] for message in messages] == ([problem] if problem else [])
    assert not messages or messages[0].startswith("is 0.5")
