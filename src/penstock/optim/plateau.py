"""The one schedule with a memory: it lowers the rate when an evaluation metric stops getting better."""

from collections.abc import Iterable
from typing import Any

from penstock.config.errors import CheckpointError
from penstock.optim.sections.schedules import MetricMode, ReduceOnPlateauLR


class PlateauSchedule:
    """base * factor ^ k, never under the minimum; k grows when `patience` evaluations and one more were no better."""

    def __init__(self, section: ReduceOnPlateauLR, base: float) -> None:
        self.base, self.metric = base, section.metric
        self._section = section
        self._best: float | None = None
        self._num_waited = 0
        self._num_reductions = 0

    def value(self, step: int, epoch: int) -> float:
        """The rate after all that was observed, whatever the step; a base of 0 stays 0."""
        if not self.base:
            return 0.0
        return max(self.base * self._section.factor**self._num_reductions, self._section.min_learning_rate)

    def observe(self, value: float) -> None:
        """Take the metric of one evaluation; a value that is not a number is no improvement."""
        if self._is_better(value):
            self._best, self._num_waited = value, 0
            return
        self._num_waited += 1
        if self._num_waited > self._section.patience:
            self._num_reductions, self._num_waited = self._num_reductions + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """Best value, evaluations since then, and reductions so far."""
        return {
            "best": self._best,
            "num_waited": self._num_waited,
            "num_reductions": self._num_reductions,
            "metric": self.metric,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there; refused if it speaks of another metric, whose values cannot be compared."""
        if state["metric"] != self.metric:
            raise CheckpointError(
                f"reduce_on_plateau_learning_rate watched '{state['metric']}' so far, now '{self.metric}'; "
                "keep the metric, or start anew with --ignore_restore_optimizer"
            )
        self._best = state["best"]
        self._num_waited, self._num_reductions = state["num_waited"], state["num_reductions"]

    def _is_better(self, value: float) -> bool:
        if value != value:
            return False
        if self._best is None:
            return True
        gain = value - self._best if self._section.mode is MetricMode.max else self._best - value
        return gain > self._section.min_delta


def plateaus(schedules: Iterable[tuple[str, object]]) -> dict[str, PlateauSchedule]:
    """Those of named schedules that want to be told evaluation metrics and have a state to save."""
    return {name: schedule for name, schedule in schedules if isinstance(schedule, PlateauSchedule)}
