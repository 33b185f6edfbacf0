"""Metrics of training: values over windows of steps, in which old windows fade."""

import copy
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from penstock.config.errors import DataError
from penstock.metrics.auc import DecayAUC
from penstock.metrics.metric import (
    Bounded,
    MemoryNeeds,
    Metric,
    MetricState,
    reduced,
    restored,
)
from penstock.metrics.torch_metric import TorchMetric
from penstock.runtime.world import Collectives, OneProcess

ROWS = "rows."
"""Before the names of the arrays of the wrapped metric in a saved state."""


class TrainMetricWrapper:
    """A metric whose value fades: closed every `decay_step` steps, and mixed into the value so far.

    A `DecayAUC` decays its counts and is computed from them. Any other metric is computed and reset; its value
    is taken as it is the first time, and later value = rate * value + (1 - rate) * that of the window. With
    `collectives` a window is closed over the rows of all ranks; then every rank must update at every step, be
    it with a batch without rows. A metric of torchmetrics gets the arguments of `update` as they are.
    """

    def __init__(
        self,
        metric: Any,
        decay_rate: float = 0.90,
        decay_step: int = 100,
        collectives: Collectives | None = None,
    ) -> None:
        if not 0.0 <= decay_rate < 1.0:
            raise DataError(
                f"decay_rate {decay_rate}: rates are from 0 to below 1, with which the first window would never fade"
            )
        if type(decay_step) is not int or decay_step < 1:
            raise DataError(f"decay_step {decay_step}: windows have a whole number of steps, from 1 on")
        if hasattr(metric, "_reductions"):
            metric = TorchMetric(metric)
            if not isinstance(collectives, OneProcess | None):
                metric.reductions()
        if isinstance(metric, type) or not hasattr(metric, "undefined_because"):
            name = getattr(metric, "__name__", type(metric).__name__)
            raise DataError(
                f"{name} is no metric; give an object such as DecayAUC(), or a metric of torchmetrics"
            )
        self.metric: Metric = metric
        self._decay_rate, self._decay_step = decay_rate, decay_step
        self._collectives: Collectives = OneProcess() if collectives is None else collectives
        self.num_steps = 0
        self._value: float | None = None  # of the closed windows
        self._num_left_out_before = 0

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Take one step; a batch without rows advances the count and adds nothing."""
        if all(np.shape(each)[:1] != (0,) for each in (*args, *kwargs.values())):
            self.metric.update(*args, **kwargs)
        self.num_steps += 1
        if self.num_steps % self._decay_step == 0:
            self._close_window()

    def compute(self) -> float:
        """The value of the windows so far; before the first has closed, of the rows of the open one."""
        return self.metric.compute() if self._value is None else self._value

    @property
    def undefined_because(self) -> str | None:
        return self.metric.undefined_because if self._value is None else None

    @property
    def remark(self) -> str | None:
        """That the value will change with every step, as long as it does."""
        is_open = self._value is None and self.undefined_because is None
        return "of the first window, which is still open" if is_open else None

    @property
    def num_left_out(self) -> int:
        return self._num_left_out_before + self.metric.num_left_out

    def reset(self) -> None:
        self.metric.reset()
        self.num_steps, self._num_left_out_before, self._value = 0, 0, None

    def merge(self, other: Self) -> None:
        """Add the rows of the open window of another that closed the same windows, such as another rank's."""
        if other.num_steps != self.num_steps or other._value != self._value:
            raise DataError(
                f"a train metric at step {other.num_steps} cannot be merged with one at {self.num_steps}: "
                "both must have closed the same windows"
            )
        self.metric.merge(other.metric)
        self._num_left_out_before += other._num_left_out_before

    def reduced(self, collectives: Collectives) -> Self:
        """One with the rows of the open window of all ranks: what a checkpoint saves. Every rank must call."""
        whole = copy.copy(self)
        whole.metric = reduced(self.metric, collectives)
        whole._num_left_out_before = int(collectives.sum(np.array(self._num_left_out_before, dtype=np.int64)))
        return whole

    def forget_rows(self) -> None:
        """Keep steps and value, not the rows.

        After loading the state of all ranks, every rank but one calls it, so that rows are counted once.
        """
        getattr(self.metric, "forget_rows", self.metric.reset)()
        self._num_left_out_before = 0

    def state_dict(self) -> MetricState:
        rows = {ROWS + name: array for name, array in self.metric.state_dict().items()}
        return {**self._own_state(), **rows}

    def _own_state(self) -> MetricState:
        return {
            "num_steps": np.array(self.num_steps, dtype=np.int64),
            "value": np.array(math.nan if self._value is None else self._value, dtype=np.float64),
            "has_value": np.array(self._value is not None),
            "num_left_out_before": np.array(self._num_left_out_before, dtype=np.int64),
        }

    def load_state_dict(self, state: MetricState) -> None:
        own = {name: array for name, array in state.items() if not name.startswith(ROWS)}
        own = restored(own, self._own_state(), "train metric")
        self.metric.load_state_dict({name[len(ROWS) :]: state[name] for name in state.keys() - own.keys()})
        self.num_steps, self._num_left_out_before = int(own["num_steps"]), int(own["num_left_out_before"])
        self._value = float(own["value"]) if own["has_value"] else None

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """For so many rows in a step."""
        if not isinstance(self.metric, Bounded):
            return MemoryNeeds(0, 0)
        return self.metric.memory_needs(num_rows * self._decay_step, num_classes)

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        if isinstance(self.metric, Bounded):
            self.metric.hold_within(limit_bytes, num_rows * self._decay_step)

    @property
    def held_bytes(self) -> int:
        return self.metric.held_bytes if isinstance(self.metric, Bounded) else 0

    @property
    def computing_bytes(self) -> int:
        return self.metric.computing_bytes if isinstance(self.metric, Bounded) else 0

    def _close_window(self) -> None:
        """The only moment at which ranks exchange anything. A window without a value changes nothing."""
        kept_rate = 0.0 if isinstance(self.metric, DecayAUC) else self._decay_rate
        if isinstance(self.metric, DecayAUC):
            self.metric.decay(self._decay_rate)
        value = reduced(self.metric, self._collectives).compute()
        if not isinstance(self.metric, DecayAUC):
            self._num_left_out_before += self.metric.num_left_out
            self.metric.reset()
        if math.isnan(value):
            return
        # A value that is infinite would never fade, and is replaced.
        if self._value is not None and math.isfinite(self._value) and kept_rate:
            value = kept_rate * self._value + (1.0 - kept_rate) * value
        self._value = value


def window_misfit(log_step_count_steps: int, decay_steps: Sequence[int]) -> str | None:
    """The warning when a log line would show a train metric in the middle of a window; None when it fits."""
    misfits = sorted({step for step in decay_steps if log_step_count_steps % step})
    if not misfits:
        return None
    step = misfits[0]
    fitting = [near for near in range(1, log_step_count_steps + 1) if log_step_count_steps % near == 0]
    below = max((near for near in fitting if near < step), default=None)
    above = min((near for near in fitting if near > step), default=None)
    near_steps = " or ".join(str(near) for near in (below, above) if near is not None)
    near_logs = step * max(1, round(log_step_count_steps / step))
    return (
        f"log_step_count_steps {log_step_count_steps} is not a multiple of decay_step {step}: the log shows the "
        f"value of the last closed window; decay_step {near_steps} or log_step_count_steps {near_logs} fit"
    )
