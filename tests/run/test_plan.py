"""Counting the bytes of a model before it is allocated."""

import pytest
import torch

from penstock.run.training import dense_copies, model_bytes
from penstock.training.sections import TrainConfig

DENSE_BYTES = 3 * 4


class ThreeWeights(torch.nn.Module):
    """A model without tables."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(3))


def train_config(**dense_optimizer):
    return TrainConfig.model_validate(
        {"sparse_optimizer": {"adagrad_optimizer": {}}, "dense_optimizer": dense_optimizer, "num_steps": 1}
    )


@pytest.mark.parametrize(
    ("dense_optimizer", "copies"),
    [
        ({"adam_optimizer": {}}, 4),
        ({"adamw_optimizer": {"amsgrad": True}, "ema": {}}, 7),
        (
            {
                "adagrad_optimizer": {},
                "part_optimizers": [{"regex_pattern": ".*", "adam_optimizer": {"amsgrad": True}}],
            },
            5,
        ),
    ],
)
def test_every_copy_that_an_optimizer_keeps_is_counted(dense_optimizer, copies):
    train = train_config(**dense_optimizer)

    assert dense_copies(train.dense_optimizer) == copies
    assert model_bytes(ThreeWeights(), train) == copies * DENSE_BYTES
    assert model_bytes(ThreeWeights(), None) == DENSE_BYTES  # a model that only scores is there once
