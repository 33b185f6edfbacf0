"""The contract of every metric."""

import json
from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError

Values = Any
"""Predictions or labels: a NumPy array, a torch tensor, or a sequence of numbers."""

MetricState = dict[str, NDArray[Any]]
"""Everything a metric has added up, by name."""

Settings = Mapping[str, Any]
"""What decides how a metric counts its rows, by name."""


SETTINGS = "settings"
"""The settings in a saved state."""


class Metric(Protocol):
    """A number about predictions and labels, added up over any number of batches."""

    def update(self, preds: Values, target: Values) -> None:
        """Add the rows of one batch."""
        ...

    def merge(self, other: Self) -> None:
        """Add the rows that another metric of the same kind has seen."""
        ...

    def compute(self) -> float:
        """The value over all rows so far; NaN when it is undefined, and then `undefined_because` says why."""
        ...

    def reset(self) -> None:
        """Forget every row."""
        ...

    def state_dict(self) -> MetricState:
        """Everything that was added up, as arrays of its own."""
        ...

    def load_state_dict(self, state: MetricState) -> None:
        """Go on from what `state_dict` gave."""
        ...

    @property
    def undefined_because(self) -> str | None:
        """Why there is no value; None when there is one."""
        ...

    @property
    def num_left_out(self) -> int:
        """Rows that were left out because their prediction is not a number."""
        ...


def refuse_other_settings(owner: str, own: Settings, other: Settings) -> None:
    """A DataError where two metrics that are to be merged do not count alike."""
    for name, value in own.items():
        if other[name] != value:
            raise DataError(
                f"{owner}: {name} {other[name]} cannot be merged with {name} {value}; give both the same settings"
            )


def with_settings(state: MetricState, settings: Settings) -> MetricState:
    """A state that also says how its rows were counted, where there is something to say."""
    if not settings:
        return state
    text = json.dumps(dict(settings), default=str)
    return {**state, SETTINGS: np.frombuffer(text.encode(), np.uint8).copy()}


def without_settings(state: MetricState, settings: Settings, owner: str) -> MetricState:
    """The rest of a saved state, if its rows were counted with these settings; else a CheckpointError."""
    saved = json.loads(np.asarray(state[SETTINGS], np.uint8).tobytes()) if SETTINGS in state else {}
    for name, value in json.loads(json.dumps(dict(settings), default=str)).items():
        if name not in saved:
            raise CheckpointError(f"{owner}: the saved state has no {name}; it is {value} now")
        if saved[name] != value:
            raise CheckpointError(f"{owner}: the saved state has {name} {saved[name]}; it is {value} now")
    return {name: array for name, array in state.items() if name != SETTINGS}


def restored(
    state: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]], owner: str
) -> MetricState:
    """Copies of the arrays of a saved state, if they have the names and shapes of this metric."""
    if state.keys() != expected.keys():
        raise CheckpointError(f"{owner}: the saved state has {sorted(state)}, not {sorted(expected)}")
    arrays = {}
    for name, like in expected.items():
        saved = np.asarray(state[name])
        if saved.shape != like.shape:
            raise CheckpointError(f"{owner}: the saved {name} has shape {saved.shape}, not {like.shape}")
        arrays[name] = saved.astype(like.dtype, copy=True)
    return arrays
