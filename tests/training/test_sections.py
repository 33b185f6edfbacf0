"""train_config and eval_config."""

import pytest
from pydantic import ValidationError

from penstock.training.sections import TrainConfig

OPTIMIZERS = {
    "sparse_optimizer": {"adagrad_optimizer": {}},
    "dense_optimizer": {"adam_optimizer": {}},
}


def train_config(**options):
    return TrainConfig.model_validate({**OPTIMIZERS, **options})


def test_training_ends_after_steps_or_after_epochs():
    assert train_config(num_steps=10).num_epochs is None
    with pytest.raises(ValidationError, match="only one of num_steps, num_epochs may be set; both are"):
        train_config(num_steps=10, num_epochs=1)
    with pytest.raises(ValidationError, match="one of num_steps, num_epochs is required"):
        train_config()


def test_tensorboard_summaries_are_a_subset():
    assert train_config(num_steps=1).tensorboard_summaries == ["loss", "learning_rate"]
    with pytest.raises(ValidationError, match="has 'gradients'; did you mean 'gradient'"):
        train_config(num_steps=1, tensorboard_summaries=["loss", "gradients"])


def test_mixed_precision_may_be_left_out_empty_or_named():
    assert train_config(num_steps=1).mixed_precision is None
    assert train_config(num_steps=1, mixed_precision="BF16").mixed_precision == "BF16"
    with pytest.raises(ValidationError, match="is 'BF15'; did you mean 'BF16'"):
        train_config(num_steps=1, mixed_precision="BF15")
    with pytest.raises(ValidationError, match="is 'FP32'; known: BF16, FP16"):
        train_config(num_steps=1, mixed_precision="FP32")
