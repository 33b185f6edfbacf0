"""What metrics over groups of rows have in common: keep rows, bring groups together, take a mean over groups."""

import copy
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError
from penstock.metrics.grouped_keys import group_keys
from penstock.metrics.inputs import as_array
from penstock.metrics.memory import MemoryNeeds
from penstock.metrics.metric import MetricState, Settings, Values, refuse_other_settings
from penstock.metrics.spill import (
    LEAST_LIMIT_BYTES,
    LIMIT_BYTES,
    ROW_BYTES,
    GroupRows,
    Rows,
    by_rank,
    row_dtype,
    rows_of,
    working_bytes,
)
from penstock.runtime.collectives import Collectives

Totals = NDArray[np.float64]
"""Over groups: the sums of value times weight and of the weights, how many groups count, how many there are."""

_NUM_TOTALS = 4


class GroupedMetric(ABC):
    """A weighted mean over groups of a value of each group.

    Rows are kept until the value is asked for, since a group may come back in any batch: in memory up to
    `limit_bytes`, then in temporary files under `folder`. These are removed by `reset` and `close`, and when the metric
    is no longer needed.
    """

    name: ClassVar[str]
    """How messages call it."""
    target_type: ClassVar[Any]
    """What ranks exchange labels as."""
    needed: ClassVar[str]
    """What a group needs to count, for `undefined_because`."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None) -> None:
        self._rows = GroupRows(limit_bytes, folder)
        self._finished = np.zeros(_NUM_TOTALS + 1)  # totals of groups that other ranks hold, and their rows
        self._num_left_out = np.zeros((), np.int64)
        self._totals: Totals | None = None

    @abstractmethod
    def _labels(self, target: NDArray[Any]) -> NDArray[Any]:
        """The labels, checked, in the type in which they are kept."""

    @abstractmethod
    def _totals_of(self, rows: Rows) -> Totals:
        """Totals of the groups of these rows; they are whole."""

    def update(self, preds: Values, target: Values, groups: Any) -> None:
        """Keep the rows of one batch; `groups` are ids of any kind (see `group_keys`), one for each row."""
        predicted, labels = np.ravel(as_array(preds)), self._labels(np.ravel(as_array(target)))
        keys = group_keys(groups, self.name)
        if not len(predicted) == len(labels) == len(keys):
            raise DataError(
                f"{self.name}: {len(predicted)} predictions for {len(labels)} labels and {len(keys)} groups"
            )
        if predicted.dtype not in (np.float32, np.float64):
            predicted = predicted.astype(np.float64)
        rows, missing = rows_of(keys, predicted, labels), np.isnan(predicted)
        if missing.any():
            self._num_left_out += np.count_nonzero(missing)
            rows = rows[~missing]
        self._keep(rows)

    def merge(self, other: Self) -> None:
        """Add the rows that another with the same options has seen."""
        refuse_other_settings(self.name, self.settings, other.settings)
        for rows in other._rows.whole_or_parts():
            self._keep(rows)
        self._finished += other._finished
        self._num_left_out += other._num_left_out
        self._totals = None

    def compute(self) -> float:
        """The mean over groups; NaN when no group counts."""
        total, weight = self._all_totals()[:2]
        return float(total / weight) if weight else math.nan

    def reset(self) -> None:
        """Forget every row, and remove what is on disk."""
        self._rows.clear()
        self._totals = None
        self._finished[:] = 0
        self._num_left_out[...] = 0

    close = reset

    def reduced(self, collectives: Collectives) -> Self:
        """A metric of the groups of all ranks, the same on each; this one stays as it is. Every rank must call.

        Each row goes to the rank that its key says, all at once, or part by part when all together are more than any
        rank may hold. So groups are whole, each rank adds up its own, and the totals are summed.
        """
        kept = self._rows
        facts = collectives.gather(np.array([kept.num_bytes, kept.limit_bytes, kept.is_spilled], np.int64))
        sizes, limits, spilled = np.stack(facts).T
        in_parts = sizes.sum() > limits.min() or spilled.any()
        found = np.zeros(_NUM_TOTALS)
        for rows in kept.parts() if in_parts else [kept.whole()]:
            wide = rows.astype(row_dtype(np.float64, self.target_type))
            found += self._totals_of(np.concatenate(collectives.all_to_all(by_rank(wide, len(facts)))))
        finished = self._finished + np.array([*found, self._rows.num_rows])
        whole = self._without_rows()
        whole._finished = collectives.sum(finished)
        whole._num_left_out = collectives.sum(self._num_left_out)
        return whole

    def state_dict(self) -> MetricState:
        """All rows, in memory, and what is already added up."""
        rows = self._rows.whole()
        columns = {name: np.array(rows[name]) for name in ("key", "pred", "target")}
        return {**columns, "finished": self._finished.copy(), "num_left_out": self._num_left_out.copy()}

    def load_state_dict(self, state: MetricState) -> None:
        """Go on from saved rows."""
        expected = {"key", "pred", "target", "finished", "num_left_out"}
        if state.keys() != expected:
            raise CheckpointError(f"{self.name}: the saved state has {sorted(state)}, not {sorted(expected)}")
        if len({len(state[name]) for name in ("key", "pred", "target")}) != 1:
            raise CheckpointError(f"{self.name}: the saved key, pred and target differ in length")
        if state["finished"].shape != self._finished.shape:
            raise CheckpointError(f"{self.name}: the saved totals are of another version of this metric")
        self.reset()
        self._keep(rows_of(state["key"], state["pred"], self._labels(state["target"])))
        self._finished[:], self._num_left_out[...] = state["finished"], state["num_left_out"]

    @property
    def undefined_because(self) -> str | None:
        """Why there is no value; None when there is one."""
        if self._all_totals()[1]:
            return None
        num_rows = self._rows.num_rows + self._finished[_NUM_TOTALS]
        return f"no group with {self.needed}" if num_rows else "no rows"

    @property
    def remark(self) -> str | None:
        """How many groups the mean is over; None where there is no value, which has a reason of its own."""
        num_counted, num_groups = (int(count) for count in self._all_totals()[2:])
        if not num_counted:
            return None
        return f"{num_counted:,} of {num_groups:,} {'group has' if num_groups == 1 else 'groups have'} {self.needed}"

    @property
    def settings(self) -> Settings:
        """What decides the value of a group and its weight: the options, which are the public attributes."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @property
    def num_left_out(self) -> int:
        """Rows whose prediction is NaN."""
        return int(self._num_left_out)

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """Rows in memory as far as there is room, the others on disk; groups much larger than others take more."""
        all_bytes, beside = ROW_BYTES * num_rows, working_bytes(num_rows)
        return MemoryNeeds(min(all_bytes, LEAST_LIMIT_BYTES) + beside, min(all_bytes, LIMIT_BYTES) + beside)

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        """Take no more than this, with what the value of a part takes."""
        self._rows.limit_bytes = max(ROW_BYTES, limit_bytes - working_bytes(num_rows))

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows in memory."""
        return self._rows.held_bytes

    @property
    def computing_bytes(self) -> int:
        """The same while the groups of one part are worked out."""
        return self._rows.held_bytes + working_bytes(self._rows.num_rows)

    def _keep(self, rows: Rows) -> None:
        self._rows.add(rows)
        self._totals = None

    def _all_totals(self) -> Totals:
        if self._totals is None:
            self._totals = self._finished[:_NUM_TOTALS].copy()
            for rows in self._rows.whole_or_parts():
                self._totals += self._totals_of(rows)
        return self._totals

    def _without_rows(self) -> Self:
        """Another with the same options that has seen nothing."""
        other = copy.copy(self)
        other._rows = self._rows.without_rows()
        other._totals = None
        return other
