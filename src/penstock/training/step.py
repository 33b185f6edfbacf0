"""From batches to finished steps: rates, forward, backward, update; and what processes agree on between steps.

A Trainer knows two names: a `Pipeline`, which gives finished steps and may hold batches in flight, and an `Agreement`.
Those here are of one process: the pipeline holds no batch, the agreement returns its argument. Others derive from them.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

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
        clip: Callable[[], object] = lambda: None,
        follow: Callable[[], None] = lambda: None,
    ) -> None:
        """`precision` is that of autocast, None for none; FP16 needs `scaling`.

        `clip` bounds the gradients before they are used; `follow` is called when the parameters have moved.
        """
        self._model, self._dense_optimizer, self._rates = model, dense_optimizer, rates
        self._device, self._precision, self._scaling = device, precision, scaling
        self._clip, self._follow = clip, follow
        self._statistics = [module for module in model.modules() if isinstance(module, _BatchNorm)]

    def __call__(self, batch: Batch, progress: TrainingProgress) -> StepOutcome:
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


class FinishedStep(NamedTuple):
    """A batch, and what came of it; `batch.resume_state` says where the data go on."""

    batch: Batch
    outcome: StepOutcome


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent on steps, and how many of them waiting for data."""

    waiting: float = 0.0
    working: float = 0.0

    def waiting_share(self) -> float:
        total = self.waiting + self.working
        return self.waiting / total if total else 0.0


class Pipeline:
    """Takes batches in and gives finished steps out, in the same order."""

    def __init__(
        self, step: Callable[[Batch, TrainingProgress], StepOutcome], progress: TrainingProgress
    ) -> None:
        self.stopwatch = Stopwatch()
        self.entered: Batch | None = None
        """The batch that is worked on; None while one is waited for."""
        self._step, self._progress = step, progress
        self._given_at: float | None = None

    def progress(self, batches: Iterator[Batch]) -> FinishedStep | None:
        """The next finished step; None when the batches are at their end and none is in flight."""
        asked_at = time.perf_counter()
        if self._given_at is not None:
            # Logging, saving and evaluating count as work: the model did not wait for data meanwhile.
            self.stopwatch.working += asked_at - self._given_at
        self.entered = self._given_at = None  # the last batch is freed while the next one is waited for
        batch = next(batches, None)
        if batch is None:
            return None
        self.entered, self._given_at = batch, time.perf_counter()
        self.stopwatch.waiting += self._given_at - asked_at
        return FinishedStep(batch, self._step(batch, self._progress))


class Wishes(NamedTuple):
    """What this process would do after a step."""

    stop: bool = False
    save: bool = False


class Agreement:
    """All processes take the same number of steps, and stop and save after the same ones."""

    def over(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches that all processes take, as many on each, padded to the rows of the largest."""
        return batches

    def decide(self, wishes: Wishes) -> Wishes:
        """What all do after the step that was finished last."""
        return wishes
