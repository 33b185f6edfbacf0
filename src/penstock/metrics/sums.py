"""Metrics that are a function of a few sums over rows: everything such metrics do alike, written once."""

import copy
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.metric import MemoryNeeds, MetricState, Values, restored
from penstock.runtime.world import Collectives

SUMS_COPIES = 3
"""Sums, what a batch adds to them, and what the value is computed from."""


class SumsMetric(ABC):
    """Holds named sums. They add up over batches, over merged metrics and over ranks.

    A metric of this kind adds to `self._sums` in `update` and gives its number in `_value`.
    """

    name: ClassVar[str]
    """The name of its section, for messages."""

    settings: Mapping[str, Any] = {}
    """What decides how rows are counted, by name: metrics must agree in it to be merged or restored."""

    columns: ClassVar[tuple[str, ...]] = ()
    """Of a metric that keeps rows beside its sums: the fields of their records, which are part of the state."""

    def __init__(self, sums: Mapping[str, NDArray[Any] | type[np.number[Any]]]) -> None:
        """`sums`: the arrays to add to, all zero; for a single number its type."""
        self._sums: MetricState = {
            name: own if isinstance(own, np.ndarray) else np.zeros((), own)
            for name, own in {**sums, "num_left_out": np.int64}.items()
        }

    @abstractmethod
    def update(self, preds: Values, target: Values) -> None: ...

    @abstractmethod
    def _value(self) -> float:
        """The number, where it is defined."""

    @property
    @abstractmethod
    def undefined_because(self) -> str | None: ...

    def compute(self) -> float:
        return self._value() if self.undefined_because is None else math.nan

    def merge(self, other: Self) -> None:
        for name, value in self.settings.items():
            if other.settings[name] != value:
                raise DataError(
                    f"{self.name}: {name} {other.settings[name]} cannot be merged with {name} {value}; "
                    "give both the same settings"
                )
        for name, own in self._sums.items():
            if (shape := other._sums[name].shape) != own.shape:
                raise DataError(
                    f"{self.name}: {name} of shape {shape} cannot be merged with shape {own.shape}; "
                    "give both the same settings"
                )
        self._sums = {name: np.asarray(own + other._sums[name]) for name, own in self._sums.items()}

    def reduced(self, collectives: Collectives) -> Self:
        whole = copy.copy(self)
        whole._sums = {name: collectives.sum(own) for name, own in self._sums.items()}
        return whole

    def reset(self) -> None:
        self._sums = {name: np.zeros_like(own) for name, own in self._sums.items()}

    def state_dict(self) -> MetricState:
        state = {name: own.copy() for name, own in self._sums.items()}
        if self.settings:
            state["settings"] = np.frombuffer(json.dumps(dict(self.settings)).encode(), np.uint8).copy()
        if self.columns:
            kept = self._kept()
            state |= {name: np.array(kept[name]) for name in self.columns}
        return state

    def load_state_dict(self, state: MetricState) -> None:
        content = state.get("settings", np.frombuffer(b"{}", np.uint8))
        saved = json.loads(np.asarray(content, np.uint8).tobytes())
        for name, value in self.settings.items():
            if name not in saved or saved[name] != value:
                found = f"{name} {saved[name]}" if name in saved else f"no {name}"
                raise CheckpointError(f"{self.name}: the saved state has {found}; it is {value} now")
        if not state.keys() >= set(self.columns):
            raise CheckpointError(
                f"{self.name}: the saved state has {sorted(state)}, not {sorted(self.columns)}"
            )
        if len({len(state[name]) for name in self.columns}) > 1:
            raise CheckpointError(f"{self.name}: the saved {', '.join(self.columns)} differ in length")
        sums = {name: state[name] for name in state if name not in ("settings", *self.columns)}
        sums = restored(sums, self._sums, self.name)
        self.reset()
        self._sums = sums
        if self.columns:
            self._keep_again(*(np.asarray(state[name]) for name in self.columns))

    def _kept(self) -> NDArray[np.void]:
        """All rows that are kept."""
        raise NotImplementedError

    def _keep_again(self, *columns: NDArray[Any]) -> None:
        """Keep the rows of a saved state."""
        raise NotImplementedError

    @property
    def num_left_out(self) -> int:
        return int(self._sums["num_left_out"])

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        return MemoryNeeds(self.computing_bytes, self.computing_bytes)

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:  # noqa: B027
        """Sums are as large as they are."""

    @property
    def held_bytes(self) -> int:
        return sum(own.nbytes for own in self._sums.values())

    @property
    def computing_bytes(self) -> int:
        return SUMS_COPIES * self.held_bytes


class RowValues(NamedTuple):
    """What each usable row of a batch contributes to a mean."""

    values: NDArray[Any]
    num_left_out: int


class RowMean(SumsMetric):
    """The mean over rows of a number that each row gives by itself."""

    def __init__(self) -> None:
        super().__init__({"total": np.float64, "num_rows": np.int64})

    @abstractmethod
    def _row_values(self, preds: Values, target: Values) -> RowValues:
        """The number of each row of a batch that has one."""

    def update(self, preds: Values, target: Values) -> None:
        values, num_left_out = self._row_values(preds, target)
        self._sums["total"] += np.sum(values, dtype=np.float64)
        self._sums["num_rows"] += len(values)
        self._sums["num_left_out"] += num_left_out

    def _value(self) -> float:
        return float(self._sums["total"] / self._sums["num_rows"])

    @property
    def undefined_because(self) -> str | None:
        return None if self._sums["num_rows"] else "no rows"
