"""From batches to finished steps: rates, forward, backward, update; and what processes agree on between steps.

A Trainer knows two names: a `Pipeline`, which gives finished steps and may hold batches in flight, and an `Agreement`.
Those here are of one process: the pipeline holds no batch, the agreement returns its argument. Others derive from them.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from penstock.config.errors import ConfigError, hint
from penstock.optim.dense import set_learning_rate
from penstock.optim.schedules import PlateauSchedule, Schedule
from penstock.runtime.world import State
from penstock.tensors.batch import Batch
from penstock.training.events import Stopwatch, TrainingProgress
from penstock.training.precision import LossScaling, computing_in


@dataclass(slots=True)
class LearningRates:
    """The optimizers of a run, each with its schedule; a rate that was set by hand stands above its schedule."""

    scheduled: Mapping[str, tuple[torch.optim.Optimizer, Schedule]]
    _applied: dict[str, float] = field(default_factory=dict, init=False)
    _set_by_hand: dict[str, float] = field(default_factory=dict, init=False)

    def values(self, progress: TrainingProgress) -> dict[str, float]:
        return {
            name: schedule.value(progress.step, progress.epoch)
            for name, (_, schedule) in self.scheduled.items()
        } | self._set_by_hand

    def apply(self, progress: TrainingProgress) -> None:
        for name, value in self.values(progress).items():
            if self._applied.get(name) != value:
                set_learning_rate(self.scheduled[name][0], value)
                self._applied[name] = value

    def set(self, value: float | None, name: str | None = None) -> None:
        """Use this rate from the next step on, for one optimizer or for all; None: follow the schedule again."""
        if name is not None and name not in self.scheduled:
            raise ConfigError(f"there is no optimizer named '{name}'; {hint(name, self.scheduled)}")
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ConfigError(f"a learning rate is a number of at least 0, not {value}")
        for one in [name] if name is not None else list(self.scheduled):
            if value is None:
                self._set_by_hand.pop(one, None)
            else:
                self._set_by_hand[one] = float(value)

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Show an evaluation to the schedules that follow one; a metric that it does not give is undefined."""
        for _, schedule in self.scheduled.values():
            if isinstance(schedule, PlateauSchedule):
                schedule.observe(metrics.get(schedule.metric, math.nan))

    def state_dict(self) -> State:
        """What was set by hand or learned from evaluations; all other rates follow from the progress."""
        plateaus = {
            name: schedule.state_dict()
            for name, (_, schedule) in self.scheduled.items()
            if isinstance(schedule, PlateauSchedule)
        }
        return {"set_by_hand": dict(self._set_by_hand), "plateaus": plateaus}

    def load_state_dict(self, state: State) -> None:
        """Go on with these rates; of optimizers that are gone nothing is kept."""
        for name, (_, schedule) in self.scheduled.items():
            if isinstance(schedule, PlateauSchedule) and name in state["plateaus"]:
                schedule.load_state_dict(state["plateaus"][name])
        self._set_by_hand = {
            name: value for name, value in state["set_by_hand"].items() if name in self.scheduled
        }


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


@dataclass
class TrainStep:
    """Takes steps with a model whose tables update themselves in the backward pass.

    The loss is therefore looked at before that pass: one that is not finite would be in the tables after it.
    """

    model: nn.Module
    dense_optimizer: torch.optim.Optimizer
    rates: LearningRates
    device: torch.device
    precision: torch.dtype | None = None
    """That of autocast; FP16 needs `scaling`."""
    scaling: LossScaling | None = None
    clip: Callable[[], object] | None = None
    """Bounds the gradients before they are used."""
    follow: Callable[[], None] | None = None
    """Called when the parameters have moved."""

    _statistics: list[nn.Module] | None = field(default=None, init=False)

    def __call__(self, batch: Batch, progress: TrainingProgress) -> StepOutcome:
        self.rates.apply(progress)
        self.dense_optimizer.zero_grad()
        if self._statistics is None:
            self._statistics = [module for module in self.model.modules() if isinstance(module, _BatchNorm)]
        # Running means and variances, which the forward pass moves.
        buffers = [buffer for module in self._statistics for buffer in module.buffers()]
        before = [buffer.clone() for buffer in buffers]
        with nullcontext() if self.precision is None else computing_in(self.precision, self.device):
            loss, (_, predictions, _) = self.model(batch.to(self.device))
        found = float(loss.detach())
        overflowed = False
        if math.isfinite(found):
            # The backward pass moves the tables; everything else moves after it.
            if self.scaling is None:
                torch.autograd.backward(loss)
            else:
                overflowed = not self.scaling.backward(loss)
            if not overflowed:
                if self.clip is not None:
                    self.clip()
                self.dense_optimizer.step()
                if self.follow is not None:
                    self.follow()
        outcome = StepOutcome(found, predictions, overflowed)
        if not outcome.taken:
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
        return outcome


class FinishedStep(NamedTuple):
    """A batch, and what came of it; `batch.resume_state` says where the data go on."""

    batch: Batch
    outcome: StepOutcome


@dataclass
class Pipeline:
    """Takes batches in and gives finished steps out, in the same order."""

    step: Callable[[Batch, TrainingProgress], StepOutcome]
    reached: TrainingProgress
    stopwatch: Stopwatch = field(default_factory=Stopwatch, init=False)
    entered: Batch | None = field(default=None, init=False)
    """The batch that is worked on; None while one is waited for."""
    _given_at: float | None = field(default=None, init=False)

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
        return FinishedStep(batch, self.step(batch, self.reached))


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
