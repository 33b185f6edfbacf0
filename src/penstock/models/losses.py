"""Losses by the name of their section: what each row costs.

B rows, K classes. A loss reads one prediction of its task: `logits`, (B,) of one class or (B, K), or `y`, (B,)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from penstock.config.errors import DataError
from penstock.config.registry import error_text, make_part, require_call
from penstock.models.sections.towers import (
    BinaryCrossEntropy,
    BinaryFocalLoss,
    CustomLoss,
    JRCLoss,
    L2Loss,
    SoftmaxCrossEntropy,
)

RowLoss = Callable[..., torch.Tensor]
"""From predictions and labels of B rows (and the rows' sessions, where it asks for them) to B losses."""


def binary_cross_entropy(
    section: BinaryCrossEntropy, logits_B: torch.Tensor, labels_B: torch.Tensor
) -> torch.Tensor:
    """Cross entropy of a label y of 0 or 1, smoothed to y * (1 - s) + s / 2."""
    labels = binary_labels(labels_B, "binary_cross_entropy").to(logits_B.dtype)
    smoothed = labels * (1.0 - section.label_smoothing) + section.label_smoothing / 2.0
    return functional.binary_cross_entropy_with_logits(logits_B, smoothed, reduction="none")


def binary_focal_loss(
    section: BinaryFocalLoss, logits_B: torch.Tensor, labels_B: torch.Tensor
) -> torch.Tensor:
    """a_t * (1 - p_t)^gamma * cross entropy: p_t is the probability of the label, a_t alpha or 1 - alpha.

    Lin et al., "Focal Loss for Dense Object Detection", 2017.
    """
    labels = binary_labels(labels_B, "binary_focal_loss").to(logits_B.dtype)
    entropy = functional.binary_cross_entropy_with_logits(logits_B, labels, reduction="none")
    probs = torch.sigmoid(logits_B)
    wrong = probs * (1.0 - labels) + (1.0 - probs) * labels
    class_weights = section.alpha * labels + (1.0 - section.alpha) * (1.0 - labels)
    return class_weights * wrong.pow(section.gamma) * entropy


def softmax_cross_entropy(
    section: SoftmaxCrossEntropy, logits_BK: torch.Tensor, labels_B: torch.Tensor
) -> torch.Tensor:
    """Cross entropy of a class: 1 - s on the label's class, and s spread evenly over all that can be chosen."""
    log_probs_BK = functional.log_softmax(logits_BK, dim=1)
    labels = class_labels(labels_B, logits_BK, "softmax_cross_entropy")
    of_label_B = -log_probs_BK.gather(1, labels.unsqueeze(1)).squeeze(1)
    smoothing = section.label_smoothing
    if not smoothing:
        return of_label_B
    masked_BK = torch.isneginf(logits_BK)
    spread_B = -log_probs_BK.masked_fill(masked_BK, 0.0).sum(dim=1) / (~masked_BK).sum(dim=1)
    return (1.0 - smoothing) * of_label_B + smoothing * spread_B


def l2_loss(_: L2Loss, y_B: torch.Tensor, labels_B: torch.Tensor) -> torch.Tensor:
    return (y_B - labels_B.to(y_B.dtype)).square()


def jrc_loss(
    section: JRCLoss, logits_B2: torch.Tensor, labels_B: torch.Tensor, sessions_B: torch.Tensor
) -> torch.Tensor:
    """alpha * calibration + (1 - alpha) * ranking, both of the two logits of a click.

    Calibration is the cross entropy over a row's two logits. Ranking is the cross entropy over the rows of a
    session: the logit of the row's label against the same logit of all rows of its session.
    Sheng et al., "Joint Optimization of Ranking and Calibration with Contextualized Hybrid Model", 2023.
    """
    alpha = section.alpha
    labels = class_labels(labels_B, logits_B2, "jrc_loss").unsqueeze(1)
    of_label_B = logits_B2.gather(1, labels).squeeze(1)
    of_classes_B = torch.logsumexp(logits_B2, dim=1)
    of_session_B = log_sum_by_session(logits_B2, sessions_B).gather(1, labels).squeeze(1)
    return alpha * (of_classes_B - of_label_B) + (1.0 - alpha) * (of_session_B - of_label_B)


def custom_loss(section: CustomLoss) -> RowLoss:
    """A loss of the user's own code; what it gives is looked at, so that no row is left out or counted twice."""
    row_loss = make_part("loss", section)
    require_call("loss", section, row_loss, "(predictions, labels)")

    def loss(predictions: torch.Tensor, labels_B: torch.Tensor) -> torch.Tensor:
        try:
            losses_B = row_loss(predictions, labels_B)
        except Exception as error:
            if isinstance(predictions, torch.fx.Proxy):
                raise
            raise DataError(f"custom_loss '{section.import_path}': fails: {error_text(error)}") from error
        return one_of_each_row(losses_B, predictions, labels_B, section.import_path)

    return loss


@dataclass(frozen=True, slots=True)
class LossKind:
    """A loss of the run file: what it is worked out from, and for which tasks it is there."""

    row_loss: Callable[..., Any]
    """A RowLoss that has its section as first argument; that of custom_loss takes only the section, and gives one."""

    reads: str = "logits"
    """The prediction it is worked out from."""

    min_classes: int = 1
    max_classes: float = 1


LOSSES: dict[str, LossKind] = {
    "binary_cross_entropy": LossKind(binary_cross_entropy),
    "softmax_cross_entropy": LossKind(softmax_cross_entropy, min_classes=2, max_classes=math.inf),
    "l2_loss": LossKind(l2_loss, reads="y"),
    "jrc_loss": LossKind(jrc_loss, min_classes=2, max_classes=2),
    "binary_focal_loss": LossKind(binary_focal_loss),
    "custom_loss": LossKind(custom_loss, max_classes=math.inf),
}
"""The losses of the run file, by the name of their section."""


@torch.fx.wrap
def one_of_each_row(
    losses_B: torch.Tensor, predictions: torch.Tensor, labels_B: torch.Tensor, import_path: str
) -> torch.Tensor:
    """The same losses, if there is one for each row, and something can be learned from them."""
    if not isinstance(losses_B, torch.Tensor):
        given_type = type(losses_B).__name__
        raise DataError(
            f"custom_loss '{import_path}': gives {given_type}; give a tensor with one loss for each row"
        )
    if predictions.requires_grad and not losses_B.requires_grad:
        raise DataError(
            f"custom_loss '{import_path}': has no gradient, so that nothing can be learned from it; compute it from "
            "the predictions by torch functions, without detach or no_grad"
        )
    if losses_B.shape != labels_B.shape:
        given, rows = tuple(losses_B.shape), len(labels_B)
        raise DataError(
            f"custom_loss '{import_path}': gives shape {given} for {rows} rows; give one loss for each"
        )
    return losses_B


@torch.fx.wrap
def binary_labels(labels_B: torch.Tensor, loss: str) -> torch.Tensor:
    """The same labels, after a look at their range; skipped on a device, where looking would mean waiting."""
    if labels_B.device.type == "cpu" and labels_B.numel():
        low, high = labels_B.aminmax()
        if not (low >= 0 and high <= 1):
            raise DataError(f"{loss}: labels run from {low.item()} to {high.item()}, outside [0, 1]")
    return labels_B


@torch.fx.wrap
def class_labels(labels_B: torch.Tensor, logits_BK: torch.Tensor, loss: str) -> torch.Tensor:
    """Labels as class numbers, after a look at their range and at masks; no look on a device."""
    classes_B, num_class = labels_B.to(torch.int64), logits_BK.shape[1]
    if labels_B.device.type == "cpu" and labels_B.numel():
        low, high = labels_B.aminmax()
        if not (low >= 0 and high <= num_class - 1) or not torch.equal(
            classes_B.to(labels_B.dtype), labels_B
        ):
            raise DataError(
                f"{loss}: labels run from {low.item()} to {high.item()}; "
                f"{num_class} classes are the whole numbers 0 to {num_class - 1}"
            )
        masked_B = torch.isneginf(logits_BK.detach().gather(1, classes_B.unsqueeze(1)).squeeze(1))
        if masked_B.any():
            row = int(masked_B.nonzero()[0])
            raise DataError(
                f"{loss}: row {row} of the batch has label {classes_B[row].item()}, which is masked"
            )
    return classes_B


def log_sum_by_session(logits_BK: torch.Tensor, sessions_B: torch.Tensor) -> torch.Tensor:
    """log(sum of exp) over the rows of each row's session, column by column: (B, K) -> (B, K).

    In O(B * K), not the square of B: the largest logit of each session is taken out before the exponentials.
    """
    _, indices_B = torch.unique(sessions_B, return_inverse=True)
    indices_BK = indices_B.unsqueeze(1).expand_as(logits_BK)
    highest_BK = (
        torch.full_like(logits_BK, -torch.inf)
        .scatter_reduce(0, indices_BK, logits_BK.detach(), "amax")
        .gather(0, indices_BK)
    )
    sums_BK = torch.zeros_like(logits_BK).scatter_add(0, indices_BK, (logits_BK - highest_BK).exp())
    return sums_BK.gather(0, indices_BK).log() + highest_BK
