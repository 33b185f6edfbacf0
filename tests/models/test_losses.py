"""Losses and sample weights by their formulas."""

import math

import pytest
import torch

from penstock.config.errors import ConfigError, DataError
from penstock.models.sections.towers import LossConfig
from penstock.models.task import Task, TaskSpace, weighted_mean
from penstock.tensors.batch import Batch


def task(loss, **options):
    return Task([LossConfig.model_validate(loss)], "y", **options)


def loss_of(loss, output, labels, **infos):
    """The one loss of a task of as many classes as the output has columns."""
    one = task(loss, num_class=output.shape[1])
    batch = Batch(labels={"y": torch.as_tensor(labels)}, additional_infos=infos)
    [value] = one.losses(one.predictions(output, batch), batch).values()
    return value


def test_labels_are_smoothed_before_the_cross_entropy():
    found = loss_of({"binary_cross_entropy": {"label_smoothing": 0.2}}, torch.tensor([[0.3], [-1.0]]), [1, 0])

    p, target = torch.sigmoid(torch.tensor([0.3, -1.0])), torch.tensor([0.9, 0.1])
    torch.testing.assert_close(found, -(target * p.log() + (1 - target) * (1 - p).log()).mean())


def test_weights_are_divided_by_their_mean_and_rows_without_weight_are_not_looked_at():
    losses, weights = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 2.0, 3.0])
    assert weighted_mean(losses, weights).item() == pytest.approx((losses * weights / 2.0).mean().item())
    assert weighted_mean(losses, None).item() == pytest.approx(7 / 3)

    for weights, expected, gradient in (
        ([1.0, 3.0, 0.0, 0.0], 1.75, [0.25, 0.75, 0.0, 0.0]),
        ([0.0] * 4, 0.0, [0.0] * 4),
    ):
        losses = torch.tensor([1.0, 2.0, math.inf, math.nan], requires_grad=True)
        mean = weighted_mean(losses, torch.tensor(weights))
        mean.backward()
        assert (mean.item(), losses.grad.tolist()) == (expected, gradient)


@pytest.mark.parametrize("label", [5.0, -1.0, float("nan")])
def test_labels_that_are_not_binary_are_refused(label):
    binary = task({"binary_cross_entropy": {}})

    with pytest.raises(DataError, match=r"binary_cross_entropy: labels run from .* outside \[0, 1\]"):
        binary.losses({"logits": torch.zeros(2)}, Batch(labels={"y": torch.tensor([0.0, label])}))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_softmax_is_the_cross_entropy_of_torch(smoothing):
    logits, labels = torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 3])

    found = loss_of({"softmax_cross_entropy": {"label_smoothing": smoothing}}, logits, labels)

    expected = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_masked_classes_have_probability_zero_and_no_part_in_the_loss(smoothing):
    options = {"softmax_cross_entropy": {"label_smoothing": smoothing}}
    masked, small = task(options, num_class=3, mask="allowed"), task(options, num_class=2)
    output = torch.tensor([[1.0, 9.0, 2.0]], requires_grad=True)
    batch = Batch(
        labels={"y": torch.tensor([2])},
        additional_infos={"allowed": torch.tensor([[1, 0, 1]], dtype=torch.int8)},
    )
    predictions = masked.predictions(output, batch)
    loss = masked.losses(predictions, batch)["softmax_cross_entropy"]
    loss.backward()

    without = small.predictions(torch.tensor([[1.0, 2.0]]), Batch())
    expected = small.losses(without, Batch(labels={"y": torch.tensor([1])}))["softmax_cross_entropy"]
    assert predictions["probs"][0, 1].item() == 0.0
    assert loss.item() == pytest.approx(expected.item())
    assert output.grad.isfinite().all()
    assert output.grad[0, 1].item() == 0.0


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        (3.0, r"labels run from 3.0 to 3.0; 3 classes are the whole numbers 0 to 2"),
        (0.5, r"labels run from 0.5 to 0.5; 3 classes are the whole numbers 0 to 2"),
        (1.0, r"row 0 of the batch has label 1, which is masked"),
    ],
)
def test_labels_that_are_no_class_are_refused(label, problem):
    classes = task({"softmax_cross_entropy": {}}, num_class=3, mask="allowed")
    batch = Batch(
        labels={"y": torch.tensor([label])}, additional_infos={"allowed": torch.tensor([[1, 0, 1]])}
    )

    with pytest.raises(DataError, match=problem):
        classes.losses(classes.predictions(torch.zeros(1, 3), batch), batch)


def test_l2_is_the_squared_error_of_y():
    assert task({"l2_loss": {}}).prediction_names == ("y",)
    assert loss_of({"l2_loss": {}}, torch.tensor([[1.0], [3.0]]), [2, 0]).item() == (1 + 9) / 2


def test_focal_loss_looks_away_from_rows_that_are_right():
    options = {"binary_focal_loss": {"gamma": 2.0, "alpha": 0.25}}
    found = loss_of(options, torch.tensor([[2.0], [2.0]]), [1.0, 0.0])

    p = torch.sigmoid(torch.tensor(2.0))
    rows = [0.25 * (1 - p) ** 2 * -p.log(), 0.75 * p**2 * -(1 - p).log()]
    assert found.item() == pytest.approx(torch.stack(rows).mean().item())


def test_jrc_adds_calibration_and_ranking_within_sessions():
    logits, labels = torch.randn(6, 2), torch.tensor([1, 0, 0, 1, 1, 0])
    sessions = torch.tensor([7, 7, 7, 4, 4, 9])

    found = loss_of({"jrc_loss": {"session_name": "visit", "alpha": 0.3}}, logits, labels, visit=sessions)

    rows = []
    for row, label in enumerate(labels):
        same_session = logits[sessions == sessions[row], label]
        calibration = -torch.log_softmax(logits[row], dim=0)[label]
        ranking = -(logits[row, label] - torch.logsumexp(same_session, dim=0))
        rows.append(0.3 * calibration + 0.7 * ranking)
    assert found.item() == pytest.approx(torch.stack(rows).mean().item(), rel=1e-6)


def test_jrc_stays_finite_for_large_logits():
    output = torch.tensor([[500.0, -500.0], [-500.0, 500.0]], requires_grad=True)
    found = loss_of({"jrc_loss": {"session_name": "visit"}}, output, [0, 1], visit=torch.tensor([1, 1]))
    found.backward()

    assert found.item() == 0.0
    assert output.grad.isfinite().all()


def test_rows_of_a_task_space_weigh_as_asked():
    space = TaskSpace("clicked", in_weight=3.0, out_weight=1.0)
    inside = task({"l2_loss": {}}, space=space, sample_weight="w", weight=2.5)
    batch = Batch(
        labels={"y": torch.tensor([1.0, 2.0, 3.0]), "clicked": torch.tensor([1, 0, 0])},
        sample_weights={"w": torch.tensor([1.0, 1.0, 0.0])},
    )
    losses = inside.losses(inside.predictions(torch.zeros(3, 1), batch), batch)

    assert losses["l2_loss"].item() == pytest.approx(2.5 * (3 * 1 + 1 * 4) / (3 + 1))
    assert inside.weight_of(batch) == 4.0


L2, BINARY = {"l2_loss": {}}, {"binary_cross_entropy": {}}
REFUSED = {
    "losses[0].binary_cross_entropy: needs num_class 1; it is 3": ([BINARY], {"num_class": 3}),
    "losses[0].softmax_cross_entropy: needs num_class 2 or more; it is 1": (
        [{"softmax_cross_entropy": {}}],
        {},
    ),
    "losses[0].jrc_loss: needs num_class 2; it is 3": (
        [{"jrc_loss": {"session_name": "s"}}],
        {"num_class": 3},
    ),
    "losses: is empty; name at least one: binary_cross_entropy, softmax_cross_entropy, l2_loss, jrc_loss, "
    "binary_focal_loss, custom_loss": ([], {}),
    "losses[0].recon_loss: semantic-id losses are not supported; there are binary_cross_entropy, "
    "softmax_cross_entropy, l2_loss, jrc_loss, binary_focal_loss, custom_loss": ([{"recon_loss": {}}], {}),
    "losses: the same loss is there twice; results are named by loss": ([L2, L2], {}),
    "mask_name: masks classes; with num_class 1 there are none": ([BINARY], {"mask": "allowed"}),
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_cannot_be_a_task_is_refused(problem):
    losses, options = REFUSED[problem]
    with pytest.raises(ConfigError) as caught:
        Task([LossConfig.model_validate(loss) for loss in losses], "y", **options)

    assert str(caught.value) == f"model_config.{problem}"
