"""The learning rate of each optimizer of a run, for each step."""

import math
from collections.abc import Mapping

import torch

from penstock.config.errors import ConfigError, hint
from penstock.optim.dense import set_learning_rate
from penstock.optim.schedules import PlateauSchedule, Schedule
from penstock.runtime.world import State
from penstock.training.progress import TrainingProgress


class LearningRates:
    """The optimizers of a run, each with its schedule; a rate that was set by hand stands above its schedule."""

    def __init__(self, scheduled: Mapping[str, tuple[torch.optim.Optimizer, Schedule]]) -> None:
        self._scheduled = scheduled
        self._applied: dict[str, float] = {}
        self._set_by_hand: dict[str, float] = {}
        self._plateaus = {
            name: schedule
            for name, (_, schedule) in scheduled.items()
            if isinstance(schedule, PlateauSchedule)
        }

    def values(self, progress: TrainingProgress) -> dict[str, float]:
        return {
            name: schedule.value(progress.step, progress.epoch)
            for name, (_, schedule) in self._scheduled.items()
        } | self._set_by_hand

    def apply(self, progress: TrainingProgress) -> None:
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
        """Show an evaluation to the schedules that follow one; a metric that it does not give is undefined."""
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
