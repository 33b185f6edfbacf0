"""Losses and sample weights by their formulas."""

import pytest
import torch

from penstock.config.errors import ConfigError, DataError
from penstock.models.losses import weighted_mean
from penstock.models.sections import LossConfig
from penstock.models.task import Task
from penstock.tensors.batch import Batch


def task(loss, **options):
    return Task([LossConfig.model_validate(loss)], "y", **options)


def cross_entropy(probability, target):
    return -(target * torch.log(probability) + (1 - target) * torch.log(1 - probability))


def test_labels_are_smoothed_before_the_cross_entropy():
    smoothed = task({"binary_cross_entropy": {"label_smoothing": 0.2}})
    predictions = smoothed.predictions(torch.tensor([0.3, -1.0]))
    probabilities = torch.sigmoid(torch.tensor([0.3, -1.0]))
    expected = cross_entropy(probabilities, torch.tensor([1 * 0.8 + 0.1, 0 * 0.8 + 0.1])).mean()

    losses = smoothed.losses(predictions, Batch(labels={"y": torch.tensor([1, 0])}))

    torch.testing.assert_close(losses, {"binary_cross_entropy": expected})


def test_weights_are_divided_by_their_mean():
    losses, weights = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 2.0, 3.0])

    assert weighted_mean(losses, weights).item() == pytest.approx((losses * weights / 2.0).mean().item())
    assert weighted_mean(losses, None).item() == pytest.approx(7 / 3)


def test_rows_of_weight_zero_change_nothing():
    padded = weighted_mean(torch.tensor([1.0, 2.0, 9.0, 9.0]), torch.tensor([1.0, 3.0, 0.0, 0.0]))

    assert padded == weighted_mean(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))


def test_nothing_but_weight_zero_gives_zero_and_no_gradient():
    logits = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = weighted_mean(logits.square(), torch.zeros(2))
    loss.backward()

    assert (loss.item(), logits.grad.tolist()) == (0.0, [0.0, 0.0])


def test_a_task_reads_its_sample_weight():
    weighted = task({"binary_cross_entropy": {}}, sample_weight="w")
    predictions = weighted.predictions(torch.tensor([0.0, 5.0]))
    batch = Batch(labels={"y": torch.tensor([1.0, 0.0])}, sample_weights={"w": torch.tensor([2.0, 0.0])})

    assert weighted.losses(predictions, batch)["binary_cross_entropy"].item() == pytest.approx(0.6931472)


def test_a_tower_is_a_suffix():
    tower = task({"binary_cross_entropy": {}}, tower="ctr")
    predictions = tower.predictions(torch.zeros(1))

    assert tuple(predictions) == tower.prediction_names == ("logits_ctr", "probs_ctr")
    assert list(tower.losses(predictions, Batch(labels={"y": torch.ones(1)}))) == ["binary_cross_entropy_ctr"]


@pytest.mark.parametrize("label", [5.0, -1.0, float("nan")])
def test_labels_that_are_not_binary_are_refused(label):
    binary = task({"binary_cross_entropy": {}})

    with pytest.raises(DataError, match=r"binary_cross_entropy: labels run from .* outside \[0, 1\]"):
        binary.losses(binary.predictions(torch.zeros(2)), Batch(labels={"y": torch.tensor([0.0, label])}))


def test_missing_and_unknown_losses_are_named():
    with pytest.raises(
        ConfigError, match=r"model_config.losses: is empty; name at least one: binary_cross_entropy"
    ):
        Task([], "y")
    with pytest.raises(
        ConfigError, match=r"losses\[0\].l2_loss: not available yet; available: binary_cross_entropy"
    ):
        task({"l2_loss": {}})
