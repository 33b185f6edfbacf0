"""What the sections of a model say without building it."""

import pytest

from penstock.models.sections.losses import LossConfig
from tests.models.small_data import model_config


@pytest.mark.parametrize(
    ("loss", "is_binary"),
    [
        ({"binary_cross_entropy": {}}, True),
        ({"binary_focal_loss": {}}, True),
        ({"l2_loss": {}}, False),
        ({"softmax_cross_entropy": {}}, False),
    ],
)
def test_losses_that_need_a_label_within_0_and_1(loss, is_binary):
    assert LossConfig.model_validate(loss).needs_binary_label is is_binary


def test_the_binary_label_of_a_model_is_the_first():
    assert model_config().binary_labels(["click", "buy"]) == ("click",)
    assert model_config(losses=[{"l2_loss": {}}]).binary_labels(["click", "buy"]) == ()
    assert model_config().binary_labels([]) == ()


def test_the_binary_labels_of_towers_are_their_own():
    towers = [
        {"tower_name": "click", "label_name": "click", "losses": [{"binary_cross_entropy": {}}]},
        {"tower_name": "stars", "label_name": "stars", "losses": [{"l2_loss": {}}]},
    ]
    model = model_config(deepfm=None, losses=[], simple_multi_task={"task_towers": towers})

    assert model.binary_labels(["stars", "click"]) == ("click",)
