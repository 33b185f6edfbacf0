"""A metric of torchmetrics as one of ours, by its methods alone: nothing of it is imported."""

import math
import sys
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.inputs import as_array
from penstock.metrics.metric import MetricState, gathered
from penstock.runtime.world import Collectives, OneProcess

_REDUCTIONS = {
    "dim_zero_sum": lambda left, right, share: left + right,
    "dim_zero_mean": lambda left, right, share: left + (right - left) * share,
    "dim_zero_cat": lambda left, right, share: _joined([each for each in (left, right) if each.size]),
    "dim_zero_min": lambda left, right, share: np.minimum(left, right),
    "dim_zero_max": lambda left, right, share: np.maximum(left, right),
}
"""By the name that torchmetrics gives them; `share` is that of the right one's updates in those of both."""


class TorchMetric:
    """Its state becomes part of `state_dict`; ranks exchange it when they are asked to, not whenever it is computed."""

    num_left_out = 0

    def __init__(self, metric: Any) -> None:
        self._metric, self._name = metric, type(metric).__name__
        self._num_updates = 0
        for module in metric.modules():
            if hasattr(module, "_reductions"):  # it may be made of several metrics
                module.persistent(True)
                module.sync_on_compute = module._to_sync = False

    def update(self, *args: Any, **kwargs: Any) -> None:
        self._metric.update(*args, **kwargs)
        self._num_updates += 1

    def compute(self) -> float:
        if not self._num_updates:
            return math.nan
        value = self._metric.compute()
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
            raise DataError(
                f"{self._name}: compute gives a {type(value).__name__}{shape}; a train metric is one number"
            ) from error

    @property
    def undefined_because(self) -> str | None:
        return None if self._num_updates else "no rows"

    def reset(self) -> None:
        self._metric.reset()
        self._num_updates = 0

    def merge(self, other: Self) -> None:
        """Add what another has seen, as torchmetrics reduces states over ranks."""
        if not other._num_updates:
            return
        state = other.state_dict()
        if self._num_updates:
            own, share = self.state_dict(), other._num_updates / (self._num_updates + other._num_updates)
            reductions = self.reductions()
            state |= {name: reductions[name](own[name], state[name], share) for name in reductions}
            state["num_updates"] += own["num_updates"]
        self.load_state_dict(state)

    def reductions(self) -> dict[str, Any]:
        """How each state is merged; a state that is merged in another way than torchmetrics' five is refused."""
        found = {}
        for name, state in self._metric.state_dict().items():
            function = getattr(self._metric, "_reductions", {}).get(name)
            kind = "dim_zero_cat" if function is None and isinstance(state, list) else _name_of(function)
            if kind not in _REDUCTIONS:
                raise DataError(
                    f"{self._name}: its state '{name}' is reduced by {kind}; on several ranks a state is reduced by "
                    "sum, mean, cat, min or max"
                )
            found[name] = _REDUCTIONS[kind]
        return found

    def reduced(self, collectives: Collectives) -> Self:
        return self if isinstance(collectives, OneProcess) else gathered(self, collectives)

    def state_dict(self) -> MetricState:
        """The states as arrays, lists of rows joined."""
        state = {
            name: _joined(own) if isinstance(own, list) else np.array(as_array(own))
            for name, own in self._metric.state_dict().items()
        }
        return {**state, "num_updates": np.array(self._num_updates, np.int64)}

    def load_state_dict(self, state: MetricState) -> None:
        own = self._metric.state_dict()
        if state.keys() != {*own, "num_updates"}:
            raise CheckpointError(f"{self._name}: the saved state has {sorted(state)}, not {sorted(own)}")
        # A scalar may have grown to a vector with the first rows; anything else keeps its shape.
        for name, now in own.items():
            shape = np.shape(state[name])
            if not isinstance(now, list) and now.ndim and shape != tuple(now.shape):
                raise CheckpointError(
                    f"{self._name}: the saved {name} has shape {shape}, not {tuple(now.shape)}"
                )
        torch: Any = sys.modules["torch"]  # whose tensors it is made of
        tensors = {name: torch.from_numpy(np.array(state[name])) for name in own}
        self._metric.reset()
        self._metric.load_state_dict(
            {
                name: ([tensors[name].to(self._metric.device)] if len(tensors[name]) else [])
                if isinstance(now, list)
                else tensors[name].to(now)
                for name, now in own.items()
            }
        )
        self._num_updates = self._metric._update_count = int(state["num_updates"])


def _name_of(function: Any) -> str:
    return "no function" if function is None else getattr(function, "__name__", repr(function))


def _joined(rows: list[Any]) -> NDArray[Any]:
    return (
        np.concatenate([np.atleast_1d(as_array(each)) for each in rows]) if rows else np.zeros(0, np.float32)
    )
