"""The groups with most rows, and the area under the ROC curve of each."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from penstock.metrics.segments import group_areas, segment_starts, sorted_keys
from penstock.metrics.spill import Rows


class LargeGroup(NamedTuple):
    """One group; `area` is None where it has one class only."""

    num_rows: int
    key: int
    area: float | None


def largest_groups(parts: Iterable[Rows], most: int) -> list[LargeGroup]:
    """The largest groups of all parts, the largest first, then by key; each group lies in one part as a whole."""
    found: list[LargeGroup] = []
    for rows in parts:
        smallest = _rank(found[-1]) if len(found) == most else None
        found = sorted([*found, *_largest_of(rows, most, smallest)], key=_rank)[:most]
    return found


def _rank(group: LargeGroup) -> tuple[int, int]:
    return -group.num_rows, group.key


def _largest_of(rows: Rows, most: int, smallest: tuple[int, int] | None) -> Iterator[LargeGroup]:
    """The largest groups of one part, as far as they come before the smallest one that was found so far."""
    order, keys = sorted_keys(np.array(rows["key"]))
    starts = segment_starts(keys)
    counts = np.diff(starts, append=len(keys))
    for index in np.argsort(-counts, kind="stable")[:most]:
        start, num_rows = starts[index], int(counts[index])
        key = int(keys[start])
        if smallest is not None and (-num_rows, key) > smallest:
            return
        group = rows[order[start : start + num_rows]]
        areas = group_areas(np.array(group["key"]), np.array(group["pred"]), np.array(group["target"])).areas
        yield LargeGroup(num_rows, key, float(areas[0]) if len(areas) else None)
