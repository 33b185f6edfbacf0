"""Areas under the ROC curves of many groups at once: one sort, then sums over segments."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class GroupAreas(NamedTuple):
    """One entry for each group that has both classes, and how many groups there are."""

    areas: NDArray[np.float64]
    num_rows: Indices
    num_positives: Indices
    num_groups: int


def group_areas(keys: NDArray[np.uint64], preds: NDArray[Any], is_positive: NDArray[np.bool_]) -> GroupAreas:
    """The exact area of each group with both classes, ties counting half; up to 2**31 rows, no NaN.

    Group, prediction and label of a row fit one word (31, 32 and 1 bits), so that the sort moves nothing but words.
    Sums are of integers: the area of a group does not depend on the others.
    """
    words = _sorted_words(keys, preds, is_positive)
    starts = segment_starts(words >> np.uint64(33))
    if not len(starts):
        return GroupAreas(np.zeros(0), starts, starts, 0)
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
    return GroupAreas(areas, num_positives + num_negatives, num_positives, len(starts))


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


def segment_starts(values: NDArray[Any]) -> Indices:
    """Where another value begins."""
    if not len(values):
        return np.zeros(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


def _sorted_words(
    keys: NDArray[np.uint64], preds: NDArray[Any], is_positive: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    order, keys = sorted_keys(keys)
    is_new = np.zeros(len(keys), np.uint64)
    is_new[1:] = keys[1:] != keys[:-1]
    words = np.cumsum(is_new, dtype=np.uint64)
    words <<= np.uint64(32)
    words |= _order_codes(preds)[order]
    words <<= np.uint64(1)
    words |= is_positive[order]
    words.sort()
    return words


def sorted_keys(keys: NDArray[np.uint64]) -> tuple[Indices, NDArray[np.uint64]]:
    """The order of the keys, and the keys in it; keys that leave room for the row's number are sorted with it."""
    index_bits = np.uint64(len(keys).bit_length())
    if not len(keys) or keys.max() >> (np.uint64(64) - index_bits):
        order = np.argsort(keys)
        return order, keys[order]
    words = keys << index_bits
    words |= np.arange(len(keys), dtype=np.uint64)
    words.sort()
    order = (words & ((np.uint64(1) << index_bits) - np.uint64(1))).view(np.int64)
    words >>= index_bits
    return order, words


def _order_codes(preds: NDArray[Any]) -> NDArray[np.uint32]:
    """Integers of 32 bits in the order of the predictions, equal where these are equal."""
    with np.errstate(over="ignore"):
        narrow = preds.astype(np.float32)
    if preds.dtype != np.float32 and not np.array_equal(narrow, preds):
        return np.unique(preds, return_inverse=True)[1].astype(np.uint32)
    bits = (narrow + np.float32(0)).view(np.uint32)  # adding zero makes -0.0 the same bits as 0.0
    is_negative = bits >> np.uint32(31) == 1
    return bits ^ np.where(is_negative, np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
