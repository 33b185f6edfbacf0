"""What a user clicked before: item ids and times, oldest first, a different number for each row."""

from dataclasses import dataclass

import numpy as np

from penstock.prep.sample_data.arrow_columns import Column, column, lists
from penstock.prep.sample_data.clicks.items import NUM_ITEMS, Items
from penstock.prep.sample_data.draws import FloatArray, IntArray, zipf_ids

MAX_LENGTH = 32

_FAVOURITE_SHARE = 0.5
"""Share of past clicks inside the user's strongest interest; the others follow popularity alone."""
_MEAN_GAP_SECONDS = 6 * 3600


@dataclass(frozen=True, slots=True)
class History:
    """Past clicks of N rows, V in all."""

    offsets_N1: IntArray
    items_V: IntArray
    seconds_V: IntArray

    @classmethod
    def draw(
        cls, rng: np.random.Generator, items: Items, top_interest_N: IntArray, now_seconds_N: IntArray
    ) -> "History":
        """Histories that reflect what each user likes and end before now. Many are short or empty."""
        lengths_N = zipf_ids(rng, MAX_LENGTH, len(now_seconds_N))
        offsets_N1 = np.concatenate(([0], np.cumsum(lengths_N)))
        items_V = _draw_items(rng, items, np.repeat(top_interest_N, lengths_N))
        gaps_V = (rng.standard_exponential(offsets_N1[-1]) * _MEAN_GAP_SECONDS).astype(np.int64) + 1
        gaps_before_V1 = np.concatenate(([0], np.cumsum(gaps_V)))
        gaps_to_end_V = np.repeat(gaps_before_V1[offsets_N1[1:]], lengths_N) - gaps_before_V1[:-1]
        return cls(offsets_N1, items_V, np.repeat(now_seconds_N, lengths_N) - gaps_to_end_V)

    @property
    def lengths_N(self) -> IntArray:
        """How many past clicks each row has."""
        return np.diff(self.offsets_N1)

    def count_in_category(self, items: Items, category_N: IntArray) -> FloatArray:
        """How many past clicks of each row lie in the row's category."""
        same_V = items.category[self.items_V] == np.repeat(category_N, self.lengths_N)
        same_before_V1 = np.concatenate(([0], np.cumsum(same_V)))
        return np.diff(same_before_V1[self.offsets_N1]).astype(np.float64)

    def items_column(self) -> Column:
        """list<int64>: item ids."""
        return lists(self.offsets_N1, column(self.items_V))

    def seconds_column(self) -> Column:
        """list<int64>: seconds since 1970."""
        return lists(self.offsets_N1, column(self.seconds_V))


def _draw_items(rng: np.random.Generator, items: Items, favourite_V: IntArray) -> IntArray:
    start_V = items.category_start[favourite_V]
    favourites_V = items.by_category[
        start_V + zipf_ids(rng, items.category_start[favourite_V + 1] - start_V, len(favourite_V))
    ]
    anything_V = zipf_ids(rng, NUM_ITEMS, len(favourite_V))
    return np.where(rng.random(len(favourite_V)) < _FAVOURITE_SHARE, favourites_V, anything_V)
