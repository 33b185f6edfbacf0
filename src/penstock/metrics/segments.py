"""Areas under the ROC curves of many groups at once: one sort, then sums over segments."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class GroupAreas(NamedTuple):
    """One entry for each group that has both classes."""

    areas: NDArray[np.float64]
    num_rows: Indices
    num_positives: Indices


def group_areas(keys: NDArray[np.uint64], preds: NDArray[Any], is_positive: NDArray[np.bool_]) -> GroupAreas:
    """The exact area of each group with both classes, ties counting half; up to 2**31 rows, no NaN.

    Group, prediction and label of a row fit one word (31, 32 and 1 bits), so that the sort moves nothing but words.
    Sums are of integers: the area of a group does not depend on the others.
    """
    words = _sorted_words(keys, preds, is_positive)
    run_starts = segment_starts(words >> np.uint64(1))  # rows of one group with one prediction
    sizes = np.diff(run_starts, append=len(words))
    positives = np.add.reduceat((words & np.uint64(1)).astype(np.int64), run_starts) if len(words) else sizes
    negatives = sizes - positives
    negatives_below = np.cumsum(negatives) - negatives  # of all groups before, too
    starts = segment_starts(words[run_starts] >> np.uint64(33))
    if not len(starts):
        return GroupAreas(np.zeros(0), starts, starts)
    num_positives = np.add.reduceat(positives, starts)
    num_negatives = np.add.reduceat(negatives, starts)
    won_twice = np.add.reduceat(positives * (2 * negatives_below + negatives), starts)
    won_twice -= 2 * negatives_below[starts] * num_positives
    both = (num_positives > 0) & (num_negatives > 0)
    num_positives, num_negatives = num_positives[both], num_negatives[both]
    areas = won_twice[both] / (2 * num_positives * num_negatives)
    return GroupAreas(areas, num_positives + num_negatives, num_positives)


def segment_starts(values: NDArray[Any]) -> Indices:
    """Where another value begins."""
    if not len(values):
        return np.zeros(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


def _sorted_words(
    keys: NDArray[np.uint64], preds: NDArray[Any], is_positive: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    order = np.argsort(keys)
    keys = keys[order]
    begins_group = np.zeros(len(keys), np.uint64)
    begins_group[segment_starts(keys)] = 1
    words = np.cumsum(begins_group, dtype=np.uint64)
    words <<= np.uint64(32)
    words |= _order_codes(preds)[order]
    words <<= np.uint64(1)
    words |= is_positive[order]
    words.sort()
    return words


def _order_codes(preds: NDArray[Any]) -> NDArray[np.uint32]:
    """Integers of 32 bits in the order of the predictions, equal where these are equal."""
    with np.errstate(over="ignore"):
        narrow = preds.astype(np.float32)
    if preds.dtype != np.float32 and not np.array_equal(narrow, preds):
        return np.unique(preds, return_inverse=True)[1].astype(np.uint32)
    bits = (narrow + np.float32(0)).view(np.uint32)  # adding zero makes -0.0 the same bits as 0.0
    is_negative = bits >> np.uint32(31) == 1
    return bits ^ np.where(is_negative, np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
