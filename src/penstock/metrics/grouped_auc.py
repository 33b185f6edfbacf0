"""Mean over groups of the exact area under the ROC curve of each: one sort, then sums over segments."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.metrics.grouped import NULL_KEY, GroupedMetric, Totals, arrow_ids, group_keys
from penstock.metrics.metric import Values
from penstock.metrics.order import Indices, order_codes, segment_starts, sorted_keys
from penstock.metrics.spool import LIMIT_BYTES, Rows

MAX_NAMED_ROWS = 1 << 16
"""Ids that are not integers are remembered of so many rows: large groups are among the first rows."""
_MAX_NARROW_KEY = np.uint64(1 << 31)
NULL = "null"
"""The name of the group of rows without an id."""


WEIGHTS = ("none", "rows", "positives")


class GroupedAUC(GroupedMetric):
    """Groups with both classes count, each alike or by its rows or positives; ties count half.

    Predictions need not be probabilities: only their order inside a group matters, and infinities are part of it.
    """

    name = "grouped_auc"
    target_type = np.bool_
    needed = "both classes"

    def __init__(
        self, weight: str = "none", *, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None
    ) -> None:
        if weight not in WEIGHTS:
            raise DataError(f"grouped_auc: weight is '{weight}'; it is one of {', '.join(WEIGHTS)}")
        super().__init__(limit_bytes=limit_bytes, folder=folder)
        self.settings = {"weight": str(weight)}
        self._names = GroupNames()

    def update(self, preds: Values, target: Values, groups: Any) -> None:  # type: ignore[override]
        super().update(preds, target, groups)
        self._names.add(groups)

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._names.merge(other._names)

    def reset(self) -> None:
        super().reset()
        self._names = GroupNames()

    def largest_groups(self, count: int) -> list[tuple[int | str, int, float | None]]:
        """Id, rows and area of the groups with most rows, of those that this rank has seen.

        The area is None where a group has one class. Of ids that are not integers only those of the first rows are
        known; others are given by their hash. It is one more pass over the rows.
        """
        found: list[tuple[int, int, float | None]] = []  # minus rows, key, area: in the order of the result
        for rows in self._rows.whole_or_parts():  # each group lies in one part as a whole
            last = found[-1][:2] if len(found) == count else None
            found = sorted([*found, *_largest_of(rows, count, last)], key=lambda group: group[:2])[:count]
        names = self._names.of([key for _, key, _ in found])
        return [(name, -negated, area) for name, (negated, _, area) in zip(names, found, strict=True)]

    def _labels(self, target: NDArray[Any]) -> NDArray[np.bool_]:
        is_positive = np.asarray(target == 1)
        wrong = ~(is_positive | (target == 0))
        if wrong.any():
            raise DataError(f"{self.name}: the label {target[wrong][0]} is neither 0 nor 1")
        return is_positive

    def _totals_of(self, rows: Rows) -> Totals:
        areas, num_rows, num_positives, num_groups = group_areas(rows)
        by = {"none": np.ones(len(areas)), "rows": num_rows, "positives": num_positives}
        weights = by[self.settings["weight"]]
        return np.array([np.sum(areas * weights), np.sum(weights), len(areas), num_groups], np.float64)


class GroupNames:
    """Ids of groups by their keys: integers are their own keys, of other ids those of the first rows are remembered."""

    def __init__(self) -> None:
        self._rows_left = MAX_NAMED_ROWS
        self._is_signed: bool | None = None  # of integers
        self._names: dict[int, str] = {}

    def add(self, groups: Any) -> None:
        if self._is_signed is not None or not self._rows_left:
            return
        ids = arrow_ids(groups, "groups")
        if pa.types.is_integer(ids.type):
            self._is_signed = pa.types.is_signed_integer(ids.type)
            return
        ids = ids.slice(0, self._rows_left)
        self._rows_left -= len(ids)
        distinct = ids.unique()
        names = [NULL if name is None else str(name) for name in distinct.to_pylist()]
        self._names |= dict(zip(group_keys(distinct, "groups").tolist(), names, strict=True))

    def merge(self, other: "GroupNames") -> None:
        if self._is_signed is None:
            self._is_signed = other._is_signed
        self._names = {**other._names, **self._names}

    def of(self, keys: list[int]) -> list[int | str]:
        """The id of each key; the key itself in hexadecimal digits where the id was not seen."""
        if self._is_signed is not None:
            offset = 2**64 if self._is_signed else 0
            return [NULL if key == NULL_KEY else key - offset * (key >= 2**63) for key in keys]
        return [self._names.get(key, f"{key:#018x}") for key in keys]


def group_areas(rows: Rows) -> tuple[NDArray[np.float64], Indices, Indices, int]:
    """Area, rows and positives of each group with both classes, and the number of all groups; up to 2**31 rows, no NaN.

    Areas are exact, ties counting half. Group, prediction and label of a row fit one word (31, 32 and 1 bits), so that
    the sort moves nothing but words.
    Sums are of integers: the area of a group does not depend on the others.
    """
    words = _sorted_words(np.array(rows["key"]), np.array(rows["pred"]), np.array(rows["target"]))
    starts = segment_starts(words >> np.uint64(33))
    if not len(starts):
        return np.zeros(0), starts, starts, 0
    positive = (words & np.uint64(1)).view(np.int64)
    num_positives = np.add.reduceat(positive, starts)
    num_negatives = np.diff(starts, append=len(words)) - num_positives
    negatives_of_groups_before = np.cumsum(num_negatives) - num_negatives
    # Of rows with one prediction the negative ones come first: a tie counts as won until half of it is taken back.
    won = np.add.reduceat(positive * np.cumsum(positive ^ 1), starts)
    won -= negatives_of_groups_before * num_positives
    won_twice = 2 * won - _tied_pairs(words, starts)
    both = (num_positives > 0) & (num_negatives > 0)
    num_positives, num_negatives = num_positives[both], num_negatives[both]
    areas = won_twice[both] / (2 * num_positives * num_negatives)
    return areas, num_positives + num_negatives, num_positives, len(starts)


def _largest_of(
    rows: Rows, count: int, last: tuple[int, int] | None
) -> Iterator[tuple[int, int, float | None]]:
    """The largest groups of one part, as far as they come before the last one that was found so far."""
    order, keys = sorted_keys(np.array(rows["key"]))
    starts = segment_starts(keys)
    sizes = np.diff(starts, append=len(keys))
    for index in np.argsort(-sizes, kind="stable")[:count]:
        start, num_rows = starts[index], int(sizes[index])
        key = int(keys[start])
        if last is not None and (-num_rows, key) > last:
            return
        areas = group_areas(rows[order[start : start + num_rows]])[0]
        yield -num_rows, key, float(areas[0]) if len(areas) else None


def _tied_pairs(words: NDArray[np.uint64], starts: Indices) -> Indices:
    """For each group, how many pairs of a negative and a positive row have one prediction."""
    tied_with_next = np.flatnonzero((words[1:] ^ words[:-1]) <= 1)
    if not len(tied_with_next):
        return np.zeros(len(starts), np.int64)
    rows = np.unique(np.concatenate((tied_with_next, tied_with_next + 1)))
    run_starts = segment_starts(words[rows] >> np.uint64(1))
    positives = np.add.reduceat((words[rows] & np.uint64(1)).view(np.int64), run_starts)
    negatives = np.diff(run_starts, append=len(rows)) - positives
    groups = np.searchsorted(starts, rows[run_starts], side="right") - 1
    pairs = np.zeros(len(starts), np.int64)
    np.add.at(pairs, groups, positives * negatives)
    return pairs


def _sorted_words(
    keys: NDArray[np.uint64], preds: NDArray[Any], is_positive: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    order: Indices | slice = slice(None)
    if len(keys) and keys.max() < _MAX_NARROW_KEY:  # ids such as row numbers: they fit as they are
        words = keys << np.uint64(32)
    else:
        order, keys = sorted_keys(keys)
        is_new = np.zeros(len(keys), np.uint64)
        is_new[1:] = keys[1:] != keys[:-1]
        words = np.cumsum(is_new, dtype=np.uint64)
        words <<= np.uint64(32)
    words |= order_codes(preds)[order]
    words <<= np.uint64(1)
    words |= is_positive[order]
    words.sort()
    return words
