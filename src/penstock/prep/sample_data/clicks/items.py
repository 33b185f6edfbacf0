"""The items of the `clicks` data: what one can see of them, and what only the planted model knows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.prep.sample_data.arrow_columns import Column, column, lists, words
from penstock.prep.sample_data.clicks.users import TASTE_RANK
from penstock.prep.sample_data.clicks.vocabulary import CATEGORIES, TAGS
from penstock.prep.sample_data.draws import FloatArray, IntArray, generator, zipf_ids

NUM_ITEMS = 5_000

_MAX_TAGS = 5
_PRICE_MISSING = 0.05
_BIAS_SCALE = 0.35
_CATEGORY_BIAS_SCALE = 0.4
_CATEGORY_TASTE_SCALE = 0.65
_OWN_TASTE_SCALE = 0.15
_TAG_SCALE = 0.2


@dataclass(frozen=True, slots=True)
class Items:
    """One entry per item id. Much of the appeal comes from category and tags, which rare items have too."""

    category: IntArray
    price: FloatArray
    """NaN where it has none."""
    has_tag: FloatArray
    """(items, tags): 1 where the item carries the tag."""
    bias: FloatArray
    taste: FloatArray
    """(items, TASTE_RANK)"""
    by_category: IntArray
    """All item ids, category after category, the most frequent first in each."""
    category_start: IntArray
    """Where each category begins in `by_category`; one more entry marks the end."""

    @classmethod
    def draw(cls, seed: int) -> "Items":
        """The items of this seed."""
        rng = generator(seed, "clicks.items")
        category = zipf_ids(rng, len(CATEGORIES), NUM_ITEMS)
        category[: len(CATEGORIES)] = np.arange(len(CATEGORIES))  # no category stays empty
        price = np.exp(rng.normal(3.0, 0.8, NUM_ITEMS))
        price[rng.random(NUM_ITEMS) < _PRICE_MISSING] = np.nan
        has_tag = _draw_tags(rng)
        category_bias = rng.normal(0.0, _CATEGORY_BIAS_SCALE, len(CATEGORIES))
        category_taste = rng.normal(0.0, _CATEGORY_TASTE_SCALE, (len(CATEGORIES), TASTE_RANK))
        own_bias = rng.normal(0.0, _BIAS_SCALE, NUM_ITEMS) + has_tag @ rng.normal(0.0, _TAG_SCALE, len(TAGS))
        own_taste = rng.normal(0.0, _OWN_TASTE_SCALE, (NUM_ITEMS, TASTE_RANK))
        return cls(
            category=category,
            price=price,
            has_tag=has_tag,
            bias=category_bias[category] + own_bias,
            taste=category_taste[category] + own_taste,
            by_category=np.argsort(category, kind="stable"),
            category_start=np.searchsorted(np.sort(category), np.arange(len(CATEGORIES) + 1)),
        )

    def price_column(self) -> Column:
        """float32, null where there is no price."""
        return column(np.round(self.price, 2), pa.float32())

    def tags_column(self) -> Column:
        """list<string>."""
        item, tag = np.nonzero(self.has_tag)
        offsets = np.searchsorted(item, np.arange(NUM_ITEMS + 1))
        return lists(offsets, words(tag, TAGS))


def _draw_tags(rng: np.random.Generator) -> FloatArray:
    """Between one and five tags per item, as a matrix of zeros and ones."""
    has_tag = np.zeros((NUM_ITEMS, len(TAGS)))
    count = rng.integers(1, _MAX_TAGS + 1, NUM_ITEMS)
    drawn = np.arange(_MAX_TAGS) < count[:, None]
    tags = zipf_ids(rng, len(TAGS), NUM_ITEMS * _MAX_TAGS).reshape(NUM_ITEMS, _MAX_TAGS)
    has_tag[np.nonzero(drawn)[0], tags[drawn]] = 1.0
    return has_tag
