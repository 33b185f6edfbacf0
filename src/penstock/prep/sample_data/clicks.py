"""The `clicks` kind: people who see items and sometimes click, buy after a click, and watch for a while.

Users and items are small tables drawn once from the seed: what everyone can see (city, age, interests; category, price,
tags) and what only the planted model knows (biases and taste vectors). A row is a user, an item, a moment, and what the
user clicked before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.prep.sample_data.blocks import (
    BLOCK_ROWS,
    Block,
    Column,
    FloatArray,
    IntArray,
    calibrator,
    column,
    generator,
    lists,
    or_zero,
    sigmoid,
    words,
    zipf_ids,
)

NUM_USERS, NUM_ITEMS = 10_000, 5_000
MAX_LENGTH = 32
"""Of histories."""
CITIES = (
    "lisbon", "porto", "madrid", "paris", "lyon", "berlin", "hamburg", "munich", "vienna", "zurich", "milan",
    "rome", "prague", "warsaw", "budapest", "athens", "oslo", "stockholm", "helsinki", "tallinn", "riga",
    "dublin", "london", "glasgow",
)  # fmt: skip
CATEGORIES = (
    "music", "sports", "news", "travel", "food", "film", "games", "fashion", "tech", "cars", "books",
    "garden", "pets", "health", "art", "science", "history", "money", "crafts", "weather",
)  # fmt: skip
DEVICES = ("phone", "desktop", "tablet", "tv")
TAGS = tuple(f"tag_{number:03d}" for number in range(120))
"""Words are most frequent first."""

_TASTE_RANK, _MAX_INTERESTS, _MAX_TAGS = 4, 4, 5
_FAVOURITE_SHARE = 0.5
"""Share of past clicks inside the user's strongest interest; the others follow popularity alone."""
_MEAN_GAP_SECONDS = 6 * 3600
_FIRST_SECOND = 1_704_067_200  # 2024-01-01 00:00:00 UTC
_SPAN_SECONDS = 28 * 24 * 3600
_DEVICE_CUMULATIVE_SHARES = np.array([0.6, 0.85, 0.95])
_DEVICE_EFFECTS = np.array([0.2, -0.2, 0.4, -0.9])
_WATCH_NOISE = 0.5


class _Users:
    """One entry per user id. Taste comes mostly from the city, so that rare users can be understood too."""

    def __init__(self, seed: int) -> None:
        rng = generator(seed, "clicks.users")
        self.city = zipf_ids(rng, len(CITIES), NUM_USERS)
        self.age: FloatArray = np.clip(np.rint(rng.normal(38.0, 13.0, NUM_USERS)), 16, 80)
        self.age[rng.random(NUM_USERS) < 0.08] = np.nan
        # Between one and four categories per user, popular ones more often, with weights from 0.1 to 1.
        count = rng.integers(1, _MAX_INTERESTS + 1, NUM_USERS)
        popularity = -np.log(np.arange(len(CATEGORIES)) + 3.0)
        order = (popularity + rng.gumbel(size=(NUM_USERS, len(CATEGORIES)))).argsort(axis=1)[:, ::-1]
        weights = rng.integers(1, 11, (NUM_USERS, len(CATEGORIES))) / 10.0
        self.interests: FloatArray = np.where(order.argsort(axis=1) < count[:, None], weights, 0.0)
        self.top_interest = self.interests.argmax(axis=1)
        city_bias = rng.normal(0.0, 0.35, len(CITIES))
        city_taste = rng.normal(0.0, 0.65, (len(CITIES), _TASTE_RANK))
        self.bias: FloatArray = city_bias[self.city] + rng.normal(0.0, 0.25, NUM_USERS)
        self.taste: FloatArray = city_taste[self.city] + rng.normal(0.0, 0.12, (NUM_USERS, _TASTE_RANK))

    def interests_column(self) -> Column:
        """map<string, float>: category -> weight."""
        user, category = np.nonzero(self.interests)
        offsets: Any = column(np.searchsorted(user, np.arange(NUM_USERS + 1)), pa.int32())
        keys = words(category, CATEGORIES).cast(pa.string())
        weights = column(self.interests[user, category], pa.float32())
        return pa.MapArray.from_arrays(offsets, keys, weights)


class _Items:
    """One entry per item id. Much of the appeal comes from category and tags, which rare items have too."""

    def __init__(self, seed: int) -> None:
        rng = generator(seed, "clicks.items")
        self.category = category = zipf_ids(rng, len(CATEGORIES), NUM_ITEMS)
        category[: len(CATEGORIES)] = np.arange(len(CATEGORIES))  # no category stays empty
        self.price: FloatArray = np.exp(rng.normal(3.0, 0.8, NUM_ITEMS))
        self.price[rng.random(NUM_ITEMS) < 0.05] = np.nan
        # Between one and five tags per item, as a matrix of zeros and ones.
        self.has_tag = np.zeros((NUM_ITEMS, len(TAGS)))
        is_drawn = np.arange(_MAX_TAGS) < rng.integers(1, _MAX_TAGS + 1, NUM_ITEMS)[:, None]
        tags = zipf_ids(rng, len(TAGS), NUM_ITEMS * _MAX_TAGS).reshape(NUM_ITEMS, _MAX_TAGS)
        self.has_tag[np.nonzero(is_drawn)[0], tags[is_drawn]] = 1.0
        category_bias = rng.normal(0.0, 0.4, len(CATEGORIES))
        category_taste = rng.normal(0.0, 0.65, (len(CATEGORIES), _TASTE_RANK))
        own_bias = rng.normal(0.0, 0.35, NUM_ITEMS) + self.has_tag @ rng.normal(0.0, 0.2, len(TAGS))
        own_taste = rng.normal(0.0, 0.15, (NUM_ITEMS, _TASTE_RANK))
        self.bias: FloatArray = category_bias[category] + own_bias
        self.taste: FloatArray = category_taste[category] + own_taste
        self.by_category = np.argsort(category, kind="stable")
        """All item ids, category after category, the most frequent first in each."""
        self.category_start = np.searchsorted(np.sort(category), np.arange(len(CATEGORIES) + 1))

    def tags_column(self) -> Column:
        item, tag = np.nonzero(self.has_tag)
        return lists(np.searchsorted(item, np.arange(NUM_ITEMS + 1)), words(tag, TAGS))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Everything the labels of a block depend on, for N rows with V past clicks in all; NaN where it is missing."""

    user: IntArray
    item: IntArray
    demand: FloatArray
    """How sought-after the item is at the moment; `ctr_7d` shows it."""
    days_since_visit: FloatArray
    seconds: IntArray
    device: IntArray
    offsets_N1: IntArray
    """Of past clicks, oldest first. Many histories are short or empty."""
    past_items_V: IntArray
    past_seconds_V: IntArray

    @property
    def hour(self) -> IntArray:
        return self.seconds // 3600 % 24


class Clicks:
    """Users, items and moments with Zipf ids; click, buy after a click, and watch time."""

    planted = (
        "click is drawn with a probability whose logit adds biases of user, item, city, category, tags and "
        "device, a low-rank user x item taste, the user's interest in the category, past clicks in the "
        "category, hour, age, price, ctr_7d and days_since_visit; buy and watch_seconds follow a click"
    )

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._users, self._items = _Users(seed), _Items(seed)
        self._ages = column(self._users.age, pa.int32())
        self._interests = self._users.interests_column()
        self._prices = column(np.round(self._items.price, 2), pa.float32())
        self._tags = self._items.tags_column()
        unseen_rows = self._draw_rows(generator(seed, "clicks.calibration"))
        self._calibrated = calibrator(self._raw_click_logit(unseen_rows))

    def block(self, index: int) -> Block:
        rng = generator(self._seed, "clicks.rows", index)
        rows = self._draw_rows(rng)
        user_bias, item_bias = self._users.bias[rows.user], self._items.bias[rows.item]
        price_effect = or_zero(np.log(self._items.price[rows.item]) - 3.0)
        click_probability = sigmoid(self._calibrated(self._raw_click_logit(rows)))
        buy_after_click = sigmoid(-1.6 + 1.2 * item_bias + 0.8 * user_bias - 0.8 * price_effect)
        log_watch = 3.0 + 0.5 * item_bias + 0.4 * or_zero(rows.demand)
        click = rng.random(BLOCK_ROWS) < click_probability
        buy = click & (rng.random(BLOCK_ROWS) < buy_after_click)
        watched = np.exp(log_watch + rng.normal(0.0, _WATCH_NOISE, BLOCK_ROWS))
        labels = {
            "click": column(click.astype(np.int64)),
            "buy": column(buy.astype(np.int64)),
            "watch_seconds": column(np.where(click, watched, 0.0), pa.float32()),
        }
        expected_watch = click_probability * np.exp(log_watch + _WATCH_NOISE**2 / 2.0)
        return Block(
            rows=pa.RecordBatch.from_pydict(self._columns(rows) | labels),
            probabilities={"click": click_probability, "buy": click_probability * buy_after_click},
            expectations={"watch_seconds": expected_watch},
        )

    def _draw_rows(self, rng: np.random.Generator) -> _Rows:
        size, items = BLOCK_ROWS, self._items
        user, item = zipf_ids(rng, NUM_USERS, size), zipf_ids(rng, NUM_ITEMS, size)
        demand = 0.5 * items.bias[item] + rng.normal(0.0, 0.6, size)
        demand[rng.random(size) < 0.12] = np.nan
        days = np.round(rng.exponential(6.0, size), 1)
        days[rng.random(size) < 0.10] = np.nan
        seconds = _FIRST_SECOND + rng.integers(0, _SPAN_SECONDS, size)
        device = np.searchsorted(_DEVICE_CUMULATIVE_SHARES, rng.random(size), side="right")
        lengths_N = zipf_ids(rng, MAX_LENGTH, size)
        offsets_N1 = np.concatenate(([0], np.cumsum(lengths_N)))
        favourite_V = np.repeat(self._users.top_interest[user], lengths_N)
        start_V = items.category_start[favourite_V]
        sizes_V, num_past = items.category_start[favourite_V + 1] - start_V, len(favourite_V)
        favourites_V = items.by_category[start_V + zipf_ids(rng, sizes_V, num_past)]
        anything_V = zipf_ids(rng, NUM_ITEMS, num_past)
        past_items_V = np.where(rng.random(num_past) < _FAVOURITE_SHARE, favourites_V, anything_V)
        gaps_V = (rng.standard_exponential(offsets_N1[-1]) * _MEAN_GAP_SECONDS).astype(np.int64) + 1
        gaps_before_V1 = np.concatenate(([0], np.cumsum(gaps_V)))
        gaps_to_end_V = np.repeat(gaps_before_V1[offsets_N1[1:]], lengths_N) - gaps_before_V1[:-1]
        past_seconds_V = np.repeat(seconds, lengths_N) - gaps_to_end_V
        return _Rows(user, item, demand, days, seconds, device, offsets_N1, past_items_V, past_seconds_V)

    def _raw_click_logit(self, rows: _Rows) -> FloatArray:
        users, items = self._users, self._items
        category = items.category[rows.item]
        same_V = items.category[rows.past_items_V] == np.repeat(category, np.diff(rows.offsets_N1))
        same_before_V1 = np.concatenate(([0], np.cumsum(same_V)))
        num_in_category = np.diff(same_before_V1[rows.offsets_N1]).astype(np.float64)
        age_in_spans = np.minimum(np.abs(users.age[rows.user] - 36.0) / 18.0, 2.0)
        moment = (
            _DEVICE_EFFECTS[rows.device]
            + 0.35 * np.cos((rows.hour - 20) * (2.0 * np.pi / 24.0))
            + 0.7 * or_zero(rows.demand)
            - 0.3 * or_zero(np.log1p(rows.days_since_visit) - 1.6)
        )
        logit: FloatArray = (
            users.bias[rows.user]
            + items.bias[rows.item]
            + np.einsum("nr,nr->n", users.taste[rows.user], items.taste[rows.item])
            + 1.2 * users.interests[rows.user, category]
            + 0.2 * np.log1p(num_in_category)
            + moment
            - 0.45 * or_zero(age_in_spans**2 - 0.7)
            - 0.45 * or_zero(np.log(items.price[rows.item]) - 3.0)
        )
        return logit

    def _columns(self, rows: _Rows) -> dict[str, Column]:
        user, item = rows.user, rows.item
        return {
            "user_id": column(user),
            "item_id": column(item),
            "city": words(self._users.city[user], CITIES),
            "device": words(rows.device, DEVICES),
            "category": words(self._items.category[item], CATEGORIES),
            "age": self._ages.take(user),
            "price": self._prices.take(item),
            "ctr_7d": column(sigmoid(rows.demand - 1.5), pa.float32()),
            "days_since_visit": column(rows.days_since_visit, pa.float32()),
            "hour": column(rows.hour),
            "event_time": column(rows.seconds * 1000, pa.timestamp("ms")),
            "tags": self._tags.take(item),
            "interests": self._interests.take(user),
            "click_seq": lists(rows.offsets_N1, column(rows.past_items_V)),
            "click_time_seq": lists(rows.offsets_N1, column(rows.past_seconds_V)),
            "cost": column(np.diff(rows.offsets_N1) + 1),
        }
