"""Stops a run whose evaluations get no better."""

import math
from dataclasses import dataclass

from penstock.runtime.world import State


@dataclass(slots=True)
class EarlyStop:
    """Counts evaluations since the best one; its state is part of the checkpoint."""

    metric: str
    patience: int
    min_delta: float = 0.0
    larger_is_better: bool = True
    restore_best: bool = True
    best: float | None = None
    best_step: int | None = None
    waited: int = 0
    """Evaluations since the best one."""

    @property
    def due(self) -> bool:
        """Whether there was no better evaluation for as long as one wanted to wait."""
        return self.waited >= self.patience

    def update(self, step: int, value: float) -> bool:
        """Count the evaluation of a step; gives whether it is the best so far.

        The earliest of equals stays the best, and an undefined value is never better.
        """
        if self._improves(value):
            self.best, self.best_step, self.waited = value, step, 0
            return True
        self.waited += 1
        return False

    def _improves(self, value: float) -> bool:
        if math.isnan(value):
            return False
        if self.best is None:
            return True
        gain = value - self.best if self.larger_is_better else self.best - value
        return gain > self.min_delta

    def reason(self) -> str:
        """For the log."""
        best = "never defined" if self.best is None else f"best {self.best:.6g} at step {self.best_step}"
        evaluations = "1 evaluation" if self.waited == 1 else f"{self.waited} evaluations"
        return f"{self.metric} got no better in {evaluations} ({best})"

    def state_dict(self) -> State:
        """The best so far, and how long one waited."""
        return {
            "metric": self.metric,
            "best": self.best,
            "best_step": self.best_step,
            "waited": self.waited,
        }

    def load_state_dict(self, state: State) -> None:
        """Go on waiting; a run that now watches another metric starts anew with it."""
        if state["metric"] != self.metric:
            return
        self.best, self.best_step, self.waited = state["best"], state["best_step"], state["waited"]
