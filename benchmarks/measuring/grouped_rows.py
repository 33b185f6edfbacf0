"""Rows in groups, and the loop over groups that `GroupedAUC` is held against."""

import math
import resource
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import psutil
from numpy.typing import NDArray

from penstock.metrics.grouped_auc import GroupedAUC

ROWS_PER_GROUP = 10
BATCH_ROWS = 8192


class Rows(NamedTuple):
    """Predictions, labels and the group of each row."""

    preds: NDArray[np.float32]
    target: NDArray[np.bool_]
    groups: NDArray[np.int64]


def generate(num_rows: int, seed: int, num_groups: int | None = None) -> Rows:
    """Rows of random groups, ten in each on the average; a higher prediction is more often positive."""
    generator = np.random.default_rng(seed)
    preds = generator.random(num_rows, dtype=np.float32)
    target = generator.random(num_rows, dtype=np.float32) < preds
    return Rows(preds, target, generator.integers(0, num_groups or num_rows // ROWS_PER_GROUP, num_rows))


def grouped_auc(rows: Rows) -> float:
    """All batches, then the value."""
    metric = GroupedAUC()
    for start in range(0, len(rows.preds), BATCH_ROWS):
        metric.update(*(column[start : start + BATCH_ROWS] for column in rows))
    return metric.compute()


def loop_over_groups(rows: Rows) -> float:
    """The fast way to loop: rows sorted by group once, views of each group, areas from ranks."""
    areas = [area_by_ranks(preds, target) for preds, target in split_by_group(rows)]
    return float(np.nanmean(areas))


def split_by_group(rows: Rows) -> Iterator[tuple[NDArray[np.float32], NDArray[np.bool_]]]:
    """Predictions and labels of each group."""
    order = np.argsort(rows.groups, kind="stable")
    bounds = np.flatnonzero(np.diff(rows.groups[order])) + 1
    return zip(np.split(rows.preds[order], bounds), np.split(rows.target[order], bounds), strict=True)


def area_by_ranks(preds: NDArray[np.float32], target: NDArray[np.bool_]) -> float:
    """From the ranks of the positive rows, those of ties averaged; NaN with one class."""
    num_positives = np.count_nonzero(target)
    num_negatives = len(target) - num_positives
    if not num_positives or not num_negatives:
        return math.nan
    _, places, counts = np.unique(preds, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    won = ranks[places][target].sum() - num_positives * (num_positives + 1) / 2
    return float(won / (num_positives * num_negatives))


def peak_bytes_beyond_start(num_rows: int) -> int:
    """What a process of its own needs for all batches and the value; batches are made as they are needed."""
    start_bytes = psutil.Process().memory_info().rss
    metric = GroupedAUC()
    for start in range(0, num_rows, BATCH_ROWS):
        batch_rows = min(BATCH_ROWS, num_rows - start)
        metric.update(*generate(batch_rows, start, num_rows // ROWS_PER_GROUP))
    metric.compute()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - start_bytes
