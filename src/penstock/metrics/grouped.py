"""What metrics over groups of rows have in common: keys of groups, rows kept, a mean over groups."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.metrics.inputs import as_array
from penstock.metrics.metric import MemoryNeeds, Values
from penstock.metrics.spool import (
    LIMIT_BYTES,
    MAX_ROW_BYTES,
    MIN_LIMIT_BYTES,
    GroupRows,
    Rows,
    by_rank,
    row_dtype,
    rows_of,
    working_bytes,
)
from penstock.metrics.sums import SumsMetric
from penstock.readers.hashes import value_hashes
from penstock.runtime.world import Collectives

NULL_KEY = np.uint64(0x6E6F2067726F7570)
"""Of integers that are missing."""

Totals = NDArray[np.float64]
"""Over groups: the sums of value times weight and of the weights, how many groups count, how many there are."""

_NUM_TOTALS = 4


def arrow_ids(groups: Any, owner: str) -> Any:
    """Ids as one Arrow array: from an Arrow array, a NumPy array, a torch tensor or a sequence."""
    if isinstance(groups, pa.ChunkedArray):
        groups = groups.combine_chunks()
    if isinstance(groups, pa.DictionaryArray):
        return groups.dictionary_decode()
    if isinstance(groups, pa.Array):
        return groups
    if not isinstance(groups, list | tuple):
        groups = np.ravel(as_array(groups))
        groups = groups.astype(np.int8) if groups.dtype == np.bool_ else groups
    try:
        return pa.array(groups)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{owner}: the groups are not ids of one kind: {error}") from error


def group_keys(groups: Any, owner: str) -> NDArray[np.uint64]:
    """One key for each id: an integer's own bits, a stable 64-bit hash of anything else; nulls are one group.

    Two different strings share a key with a chance of 2**-64: among a million groups some pair does with a chance of
    3 in 100 million.
    """
    if isinstance(groups, np.ndarray) and groups.dtype.kind in "iu":
        return _bits(np.ravel(groups))
    ids = arrow_ids(groups, owner)
    if not pa.types.is_integer(ids.type):
        return value_hashes(ids)
    keys = _bits(pc.fill_null(ids, 0).to_numpy())
    if ids.null_count:
        keys[ids.is_null().to_numpy(zero_copy_only=False)] = NULL_KEY
    return keys


def _bits(integers: NDArray[Any]) -> NDArray[np.uint64]:
    """Equal integers of any width have equal bits."""
    return integers.astype(np.uint64 if integers.dtype.kind == "u" else np.int64).view(np.uint64)


class GroupedMetric(SumsMetric):
    """A weighted mean over groups of a value of each group.

    Rows are kept until the value is asked for, since a group may come back in any batch: in memory up to
    `limit_bytes`, then in temporary files under `folder`. These are removed by `reset`, and when the metric is no
    longer needed.
    """

    columns = ("key", "pred", "target")
    target_type: ClassVar[Any]
    """What ranks exchange labels as."""
    needed: ClassVar[str]
    """What a group needs to count, for `undefined_because`."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None) -> None:
        # Totals of groups that other ranks hold, and their rows.
        super().__init__({"finished": np.zeros(_NUM_TOTALS + 1)})
        self._rows = GroupRows(limit_bytes, folder)
        self._totals: Totals | None = None

    @abstractmethod
    def _labels(self, target: NDArray[Any]) -> NDArray[Any]:
        """The labels, checked, in the type in which they are kept."""

    @abstractmethod
    def _totals_of(self, rows: Rows) -> Totals:
        """Totals of the groups of these rows; they are whole."""

    def update(self, preds: Values, target: Values, groups: Any) -> None:  # type: ignore[override]
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
            self._sums["num_left_out"] += np.count_nonzero(missing)
            rows = rows[~missing]
        self._keep(rows)

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._totals = None
        for rows in other._rows.whole_or_parts():
            self._keep(rows)

    def reset(self) -> None:
        super().reset()
        self._rows.clear()
        self._totals = None

    def reduced(self, collectives: Collectives) -> Self:
        """A metric of the groups of all ranks, the same on each; this one stays as it is. Every rank must call.

        Each row goes to the rank of its key, all at once, or part by part when all together are more than any
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
        whole = super().reduced(collectives)
        whole._sums["finished"] += collectives.sum(np.array([*found, kept.num_rows]))
        whole._rows, whole._totals = kept.without_rows(), None
        return whole

    def _kept(self) -> Rows:
        return self._rows.whole()

    def _keep_again(self, *columns: NDArray[Any]) -> None:
        keys, preds, target = columns
        self._keep(rows_of(keys, preds, self._labels(target)))

    def _value(self) -> float:
        total, weight = self._all_totals()[:2]
        return float(total / weight)

    @property
    def undefined_because(self) -> str | None:
        if self._all_totals()[1]:
            return None
        num_rows = self._rows.num_rows + self._sums["finished"][_NUM_TOTALS]
        return f"no group with {self.needed}" if num_rows else "no rows"

    @property
    def remark(self) -> str | None:
        """How many groups the mean is over; None where there is no value, which has its own reason."""
        num_counted, num_groups = (int(count) for count in self._all_totals()[2:])
        if not num_counted:
            return None
        return f"{num_counted:,} of {num_groups:,} {'group has' if num_groups == 1 else 'groups have'} {self.needed}"

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """Rows in memory up to the limit, the others on disk; groups much larger than others take more."""
        all_bytes, beside = MAX_ROW_BYTES * num_rows, working_bytes(num_rows)
        return MemoryNeeds(min(all_bytes, MIN_LIMIT_BYTES) + beside, min(all_bytes, LIMIT_BYTES) + beside)

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        self._rows.limit_bytes = max(MAX_ROW_BYTES, limit_bytes - working_bytes(num_rows))

    @property
    def held_bytes(self) -> int:
        return self._rows.held_bytes

    @property
    def computing_bytes(self) -> int:
        return self._rows.held_bytes + working_bytes(self._rows.num_rows)

    def _keep(self, rows: Rows) -> None:
        self._rows.add(rows)
        self._totals = None

    def _all_totals(self) -> Totals:
        if self._totals is None:
            self._totals = self._sums["finished"][:_NUM_TOTALS].copy()
            for rows in self._rows.whole_or_parts():
                self._totals += self._totals_of(rows)
        return self._totals
