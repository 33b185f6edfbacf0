"""One training step: rates, forward, backward, update."""

from collections.abc import Mapping

import torch
from torch import nn

from penstock.loops.progress import TrainingProgress
from penstock.optim.rates import set_learning_rate
from penstock.optim.schedules import Schedule
from penstock.tensors.batch import Batch


class LearningRates:
    """The optimizers of a run, each with its schedule."""

    def __init__(self, scheduled: Mapping[str, tuple[torch.optim.Optimizer, Schedule]]) -> None:
        self._scheduled = scheduled
        self._applied: dict[str, float] = {}

    def values(self, progress: TrainingProgress) -> dict[str, float]:
        """The rate of each optimizer for the next step."""
        return {
            name: schedule.value(progress.step, progress.epoch)
            for name, (_, schedule) in self._scheduled.items()
        }

    def apply(self, progress: TrainingProgress) -> None:
        """Bring the rates to the optimizers, where they changed."""
        for name, value in self.values(progress).items():
            if self._applied.get(name) != value:
                set_learning_rate(self._scheduled[name][0], value)
                self._applied[name] = value


class TrainStep:
    """Takes steps with a model whose tables update themselves in the backward pass."""

    def __init__(
        self,
        model: nn.Module,
        dense_optimizer: torch.optim.Optimizer,
        rates: LearningRates,
        device: torch.device,
    ) -> None:
        self._model, self._dense_optimizer, self._rates = model, dense_optimizer, rates
        self._device = device

    def __call__(self, batch: Batch, progress: TrainingProgress) -> float:
        """One step; gives the loss."""
        self._rates.apply(progress)
        self._dense_optimizer.zero_grad()
        loss, _ = self._model(batch.to(self._device))
        loss.backward()
        self._dense_optimizer.step()
        return float(loss.detach())
