"""overlap_feature: how much the words of a query and of a title have in common, as a number.

| method             | number                                                                            |
|--------------------|-----------------------------------------------------------------------------------|
| query_common_ratio | share of the query's words that the title has                                     |
| title_common_ratio | share of the title's words that the query has                                     |
| is_contain         | 1 if the title has all words of the query in their order, others between them or not |
| is_equal           | 1 if both have the same words in the same order                                   |

Words are values, so `separator` stands between them. Where one of the two is missing, the number is 0.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from penstock.features.feature import Recipe
from penstock.features.maps import find, strings_in
from penstock.features.sections.types import OverlapFeature
from penstock.features.strings import as_strings
from penstock.features.values import BoolArray, Float64Array, Values, one_per_row, sum_by_row


def overlap_recipe(config: OverlapFeature) -> Recipe:
    return Recipe((config.query, config.title), partial(_overlap, method=config.method), reads_text=True)


def _overlap(inputs: Sequence[Values], method: str) -> Values:
    query, title = map(as_strings, inputs)
    found: Float64Array | BoolArray
    if method == "query_common_ratio":
        found = _common_ratio(query, title)
    elif method == "title_common_ratio":
        found = _common_ratio(title, query)
    else:
        found = _is_contained(query, title) & (query.lengths > 0)
        if method == "is_equal":
            found &= query.lengths == title.lengths
    return Values(found.astype(np.float64), one_per_row(len(found)))


def _common_ratio(words: Values, others: Values) -> Float64Array:
    num_common = sum_by_row(find(words, others) >= 0, words.lengths)
    return num_common / np.maximum(words.lengths, 1)


def _is_contained(words: Values, others: Values) -> BoolArray:
    """Whether each row of `others` has the words of the row in their order."""
    from penstock.features import map_kernels

    left, right = strings_in(words), strings_in(others)
    found = np.empty(len(words.lengths), np.bool_)
    map_kernels.find_in_order(
        (left.data, left.starts, left.ends),
        np.cumsum(words.lengths, dtype=np.int64),
        (right.data, right.starts, right.ends),
        np.cumsum(others.lengths, dtype=np.int64),
        found,
    )
    return found
