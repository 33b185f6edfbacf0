"""One training step: rates, forward, backward, update."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.loops.progress import TrainingProgress
from penstock.optim.plateau import plateaus
from penstock.optim.rates import set_learning_rate
from penstock.optim.schedules import Schedule
from penstock.runtime.state import State
from penstock.tensors.batch import Batch


class LearningRates:
    """The optimizers of a run, each with its schedule; a rate that was set by hand stands above its schedule."""

    def __init__(self, scheduled: Mapping[str, tuple[torch.optim.Optimizer, Schedule]]) -> None:
        self._scheduled = scheduled
        self._applied: dict[str, float] = {}
        self._set_by_hand: dict[str, float] = {}
        self._plateaus = plateaus((name, schedule) for name, (_, schedule) in scheduled.items())

    def values(self, progress: TrainingProgress) -> dict[str, float]:
        """The rate of each optimizer for the next step."""
        return {
            name: schedule.value(progress.step, progress.epoch)
            for name, (_, schedule) in self._scheduled.items()
        } | self._set_by_hand

    def apply(self, progress: TrainingProgress) -> None:
        """Bring the rates to the optimizers, where they changed."""
        for name, value in self.values(progress).items():
            if self._applied.get(name) != value:
                set_learning_rate(self._scheduled[name][0], value)
                self._applied[name] = value

    def set(self, value: float | None, name: str | None = None) -> None:
        """Use this rate from the next step on, for one optimizer or for all; None: follow the schedule again."""
        if name is not None and name not in self._scheduled:
            raise ConfigError(f"there is no optimizer named '{name}'; {hint(name, self._scheduled)}")
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ConfigError(f"a learning rate is a number of at least 0, not {value}")
        for one in [name] if name is not None else list(self._scheduled):
            if value is None:
                self._set_by_hand.pop(one, None)
            else:
                self._set_by_hand[one] = float(value)

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Tell an evaluation to the schedules that follow one; a metric that it does not give is undefined."""
        for schedule in self._plateaus.values():
            schedule.observe(metrics.get(schedule.metric, math.nan))

    def state_dict(self) -> State:
        """What was set by hand or learned from evaluations; all other rates follow from the progress."""
        return {
            "set_by_hand": dict(self._set_by_hand),
            "plateaus": {name: schedule.state_dict() for name, schedule in self._plateaus.items()},
        }

    def load_state_dict(self, state: State) -> None:
        """Go on with these rates; of optimizers that are gone nothing is kept."""
        for name, schedule in self._plateaus.items():
            if name in state["plateaus"]:
                schedule.load_state_dict(state["plateaus"][name])
        self._set_by_hand = {
            name: value for name, value in state["set_by_hand"].items() if name in self._scheduled
        }


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step found. Where the loss is not finite, the step was not taken: no parameter moved."""

    loss: float
    predictions: Mapping[str, torch.Tensor]
    """By name, without gradients."""

    @property
    def taken(self) -> bool:
        """Whether parameters moved."""
        return math.isfinite(self.loss)


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
        clip: Callable[[], None] = lambda: None,
        follow: Callable[[], None] = lambda: None,
    ) -> None:
        """`precision` is that of autocast, None for none.

        `clip` bounds the gradients before they are used; `follow` is called when the parameters have moved.
        """
        self._model, self._dense_optimizer, self._rates = model, dense_optimizer, rates
        self._device, self._precision, self._clip, self._follow = device, precision, clip, follow
        self._statistics = [module for module in model.modules() if isinstance(module, BatchStatistics)]

    def __call__(self, batch: Batch, progress: TrainingProgress) -> StepOutcome:
        """One step, unless its loss is not finite."""
        self._rates.apply(progress)
        self._dense_optimizer.zero_grad()
        before = self._batch_statistics()
        with computing_in(self._precision, self._device):
            loss, (_, predictions, _) = self._model(batch.to(self._device))
        outcome = StepOutcome(float(loss.detach()), predictions)
        if not outcome.taken:
            self._restore_statistics(before)
            return outcome
        loss.backward()
        self._clip()
        self._dense_optimizer.step()
        self._follow()
        return outcome

    def _batch_statistics(self) -> list[torch.Tensor]:
        """Copies of the running means and variances, which the forward pass moves."""
        return [buffer.clone() for module in self._statistics for buffer in module.buffers()]

    def _restore_statistics(self, before: list[torch.Tensor]) -> None:
        buffers = (buffer for module in self._statistics for buffer in module.buffers())
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(value)


@contextmanager
def computing_in(precision: torch.dtype | None, device: torch.device) -> Iterator[None]:
    """Autocast, or nothing; what a processor cannot do in this precision is told as what it is."""
    try:
        with torch.autocast(device.type, precision, enabled=precision is not None):
            yield
    except RuntimeError as error:
        if precision is None or "could not create a primitive" not in str(error):
            raise
        raise ConfigError.at(
            "train_config.mixed_precision",
            "torch cannot compute this model in BF16 on this processor; leave it out, or set the environment "
            "variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16",
        ) from error


BatchStatistics = nn.modules.batchnorm._BatchNorm
"""Modules that keep running statistics of the batches they saw."""
