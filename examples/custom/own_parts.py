"""A custom metric, loss, learning-rate schedule and optimizer, for run.yaml beside this file."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from penstock.metrics.inputs import binary_rows
from penstock.metrics.sums import RowMean, RowValues


class Brier(RowMean):
    """Mean of (probability - label)^power. The base class adds up, merges, saves; here is what one row gives."""

    name = "brier"

    def __init__(self, power: float = 2.0) -> None:
        super().__init__()
        self.power = power

    def _row_values(self, preds: Any, target: Any) -> RowValues:
        rows = binary_rows(preds, target, self.name)
        errors = np.abs(rows.probabilities - rows.is_positive)
        return RowValues(errors**self.power, rows.num_left_out)


def weighted_cross_entropy(positive_weight: float = 1.0) -> Callable[..., torch.Tensor]:
    """Cross entropy in which a positive row counts `positive_weight` times: one loss for each row."""

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        weight = logits.new_tensor(positive_weight)
        return functional.binary_cross_entropy_with_logits(
            logits, labels.to(logits.dtype), pos_weight=weight, reduction="none"
        )

    return loss


def inverse_square_root(warmup_steps: int) -> Callable[[float, int], float]:
    """A line up to the base rate, then base * sqrt(warmup_steps / n)."""

    def rate(base: float, completed: int) -> float:
        n = max(completed, 1)
        return base * min(n / warmup_steps, math.sqrt(warmup_steps / n))

    return rate


class SignDescent(torch.optim.Optimizer):
    """Each weight moves by lr against the sign of a running mean of its gradient."""

    def __init__(self, params: Iterable[Any], lr: float, beta: float = 0.9) -> None:
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every weight that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                mean.lerp_(weight.grad, 1 - group["beta"])
                weight.sub_(mean.sign(), alpha=group["lr"])
