"""Losses by the name of their section: what each row costs, and how rows become one number."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from penstock.config.errors import DataError

if TYPE_CHECKING:
    from penstock.models.sections import BinaryCrossEntropy

RowLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From logits and labels of B rows to B losses."""


@dataclass(frozen=True, slots=True)
class LossKind:
    """A loss of the run file, and the predictions of a model that minimises it."""

    build: Callable[[Any], RowLoss]
    predictions: tuple[str, ...]


def binary_cross_entropy(section: "BinaryCrossEntropy") -> RowLoss:
    """Cross entropy of a label y of 0 or 1, smoothed to y * (1 - s) + s / 2."""
    smoothing = section.label_smoothing

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        smoothed = binary_labels(labels).to(logits.dtype) * (1.0 - smoothing) + smoothing / 2.0
        return functional.binary_cross_entropy_with_logits(logits, smoothed, reduction="none")

    return loss


LOSSES: dict[str, LossKind] = {
    "binary_cross_entropy": LossKind(binary_cross_entropy, predictions=("logits", "probs")),
}
"""The losses of the run file, by the name of their section."""


@torch.fx.wrap
def binary_labels(labels: torch.Tensor) -> torch.Tensor:
    """The same labels, after a look at their range; skipped on a device, where looking would mean waiting."""
    if labels.device.type == "cpu" and labels.numel():
        low, high = labels.aminmax()
        if not (low >= 0 and high <= 1):
            raise DataError(
                f"binary_cross_entropy: labels run from {low.item()} to {high.item()}, outside [0, 1]"
            )
    return labels


def weighted_mean(losses: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """Mean over the rows of loss * weight / (mean weight); 0 when every weight is 0.

    A row of weight 0 changes neither the value nor the gradient: the number of rows cancels out.
    """
    if weights is None:
        return losses.mean()
    weights = weights.to(losses.dtype)
    total = weights.sum()
    return (losses * weights).sum() / torch.where(total == 0, torch.ones_like(total), total)
