"""Pairs of rows: counting those in the right order without looking at each, numbering them, drawing some.

The pairs i < j of n rows are numbered k = j (j - 1) / 2 + i, so that 0 <= k < n (n - 1) / 2 and the pairs of the first
rows come first. Everything is integer arithmetic; nothing is as large as the number of pairs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[Any]
"""Whole numbers: int64, or int32 where these will do."""
Words = NDArray[np.uint64]


def num_pairs(num_rows: int) -> int:
    """How many pairs i < j there are."""
    return num_rows * (num_rows - 1) // 2


def num_right_pairs(preds: NDArray[Any], target: NDArray[Any]) -> int:
    """Pairs that predictions and labels order alike, in O(n log n); a tie on either side is not alike.

    In the order of the labels, equal labels from the highest prediction down, these are exactly the pairs whose
    later prediction is the higher one.
    """
    if len(preds) < 2:
        return 0
    ranks, num_ranks = _ranks(preds)
    return _num_ascending_pairs(ranks[np.lexsort((-ranks, target))], num_ranks)


def _ranks(values: NDArray[Any]) -> tuple[Indices, int]:
    """The rank of each value among the distinct ones, in as few bytes as will do, and how many these are."""
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.int32 if len(values) < 2**31 else np.int64), len(distinct)


def _num_ascending_pairs(ranks: Indices, num_ranks: int) -> int:
    """Pairs i < j with ranks[i] < ranks[j].

    Two different ranks part at one bit: above it they are equal, there the smaller has 0 and the larger 1. So, from the
    highest bit down, the ranks are kept grouped by the bits above, in their order, and each rank with a 1 counts the
    ranks with a 0 before it in its group.
    """
    total = 0
    for bit in reversed(range((num_ranks - 1).bit_length())):
        is_low = (ranks >> bit) & 1 == 0
        group = ranks >> (bit + 1)
        starts = np.concatenate(([0], np.flatnonzero(np.diff(group)) + 1)).astype(ranks.dtype)
        sizes = np.diff(starts, append=ranks.dtype.type(len(ranks)))
        low_until = np.cumsum(is_low, dtype=ranks.dtype)
        low_before_group = low_until[starts] - is_low[starts]
        low_in_group = np.add.reduceat(is_low, starts, dtype=ranks.dtype)
        low_so_far = low_until - np.repeat(low_before_group, sizes)
        total += int(low_so_far[~is_low].sum(dtype=np.int64))
        places = np.arange(len(ranks), dtype=ranks.dtype)
        places -= low_so_far
        places += np.repeat(low_in_group, sizes)
        low_so_far += np.repeat(starts, sizes)
        np.copyto(places, low_so_far - 1, where=is_low)
        grouped = np.empty_like(ranks)
        grouped[places] = ranks
        ranks = grouped
    return total


def pairs_numbered(numbers: Indices) -> tuple[Indices, Indices]:
    """The pairs i < j with these numbers, exact up to 2**61: a guess by a root, put right by integers."""
    later = np.sqrt(2.0 * numbers).astype(np.int64)
    for _ in range(2):
        later += (later + 1) * later // 2 <= numbers
        later -= later * (later - 1) // 2 > numbers
    return numbers - later * (later - 1) // 2, later


def drawn_numbers(draws: Indices, num_draws: Any, num_all: Any, starts: Indices, noise: Words) -> Indices:
    """The numbers that the draws 0 <= d < num_draws take of `num_all`: all different, each number as likely.

    The circle of all numbers, from a random start, is cut into `num_draws` arcs, and each draw takes one number of its
    arc. `num_draws`, `num_all` and `starts` are one for all draws, or one for each.
    """
    share, rest = num_all // num_draws, num_all % num_draws
    begins = draws * share + draws * rest // num_draws
    lengths = (draws + 1) * share + (draws + 1) * rest // num_draws - begins
    inside = (noise % lengths.astype(np.uint64)).astype(np.int64)
    numbers: Indices = (starts + begins + inside) % num_all
    return numbers
