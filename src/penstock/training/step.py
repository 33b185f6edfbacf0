"""One training step: rates, forward, backward, update."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from penstock.tensors.batch import Batch
from penstock.training.learning_rates import LearningRates
from penstock.training.precision import LossScaling, computing_in
from penstock.training.progress import TrainingProgress


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step found. Where the loss or, in FP16, a gradient is not finite, it was not taken: nothing moved."""

    loss: float
    predictions: Mapping[str, torch.Tensor]
    """By name, without gradients."""

    overflowed: bool = False
    """Whether a gradient was too large for FP16, though the loss is finite."""

    @property
    def taken(self) -> bool:
        return math.isfinite(self.loss) and not self.overflowed


class TrainStep:
    """Takes steps with a model whose tables update themselves in the backward pass.

    The loss is therefore looked at before that pass: one that is not finite would be in the tables after it.
    """

    def __init__(
        self,
        model: nn.Module,
        dense_optimizer: torch.optim.Optimizer,
        rates: LearningRates,
        device: torch.device,
        *,
        precision: torch.dtype | None = None,
        scaling: LossScaling | None = None,
        clip: Callable[[], None] = lambda: None,
        follow: Callable[[], None] = lambda: None,
    ) -> None:
        """`precision` is that of autocast, None for none; FP16 needs `scaling`.

        `clip` bounds the gradients before they are used; `follow` is called when the parameters have moved.
        """
        self._model, self._dense_optimizer, self._rates = model, dense_optimizer, rates
        self._device, self._precision, self._scaling = device, precision, scaling
        self._clip, self._follow = clip, follow
        self._statistics = [module for module in model.modules() if isinstance(module, BatchStatistics)]

    def __call__(self, batch: Batch, progress: TrainingProgress) -> StepOutcome:
        """One step, unless its loss or a gradient is not finite."""
        self._rates.apply(progress)
        self._dense_optimizer.zero_grad()
        # Running means and variances, which the forward pass moves.
        buffers = [buffer for module in self._statistics for buffer in module.buffers()]
        before = [buffer.clone() for buffer in buffers]
        with computing_in(self._precision, self._device):
            loss, (_, predictions, _) = self._model(batch.to(self._device))
        found = float(loss.detach())
        overflowed = False
        if math.isfinite(found):
            if self._scaling is not None:
                overflowed = not self._scaling.learn(loss, self._move)
            else:
                torch.autograd.backward(loss)
                self._move()
        outcome = StepOutcome(found, predictions, overflowed)
        if not outcome.taken:
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
        return outcome

    def _move(self) -> None:
        """Move everything but tables, which the backward pass has moved."""
        self._clip()
        self._dense_optimizer.step()
        self._follow()


BatchStatistics = nn.modules.batchnorm._BatchNorm
"""Modules that keep running statistics of the batches they saw."""
