"""The `clicks` kind: adds up what makes a user click, and draws the labels."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.prep.sample_data.arrow_columns import column, words
from penstock.prep.sample_data.block import BLOCK_ROWS, Block
from penstock.prep.sample_data.calibration import Calibration
from penstock.prep.sample_data.clicks.history import History
from penstock.prep.sample_data.clicks.items import NUM_ITEMS, Items
from penstock.prep.sample_data.clicks.moments import Moments
from penstock.prep.sample_data.clicks.users import NUM_USERS, Users
from penstock.prep.sample_data.clicks.vocabulary import CATEGORIES, CITIES, DEVICES
from penstock.prep.sample_data.draws import FloatArray, IntArray, generator, or_zero, sigmoid, zipf_ids

_WATCH_NOISE = 0.5


@dataclass(frozen=True, slots=True)
class _Rows:
    """Everything the labels of a block depend on."""

    user: IntArray
    item: IntArray
    moments: Moments
    history: History


@dataclass(frozen=True, slots=True)
class _Labels:
    click_probability: FloatArray
    buy_probability: FloatArray
    expected_watch_seconds: FloatArray
    click: IntArray
    buy: IntArray
    watch_seconds: FloatArray


class Clicks:
    """Users, items and moments with Zipf ids; click, buy after a click, and watch time."""

    planted = (
        "click is drawn with a probability whose logit adds biases of user, item, city, category, tags and "
        "device, a low-rank user x item taste, the user's interest in the category, past clicks in the "
        "category, hour, age, price, ctr_7d and days_since_visit; buy and watch_seconds follow a click"
    )

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._users = Users.draw(seed)
        self._items = Items.draw(seed)
        self._user_columns = {"age": self._users.age_column(), "interests": self._users.interests_column()}
        self._item_columns = {"price": self._items.price_column(), "tags": self._items.tags_column()}
        unseen_rows = self._draw_rows(generator(seed, "clicks.calibration"))
        self._calibration = Calibration.measure(self._raw_click_logit(unseen_rows))

    def block(self, index: int) -> Block:
        """The rows from index * BLOCK_ROWS on."""
        rng = generator(self._seed, "clicks.rows", index)
        rows = self._draw_rows(rng)
        labels = self._draw_labels(rng, rows)
        return Block(
            rows=self._as_columns(rows, labels),
            probabilities={"click": labels.click_probability, "buy": labels.buy_probability},
            expectations={"watch_seconds": labels.expected_watch_seconds},
        )

    def _draw_rows(self, rng: np.random.Generator) -> _Rows:
        user = zipf_ids(rng, NUM_USERS, BLOCK_ROWS)
        item = zipf_ids(rng, NUM_ITEMS, BLOCK_ROWS)
        moments = Moments.draw(rng, self._items.bias[item])
        history = History.draw(rng, self._items, self._users.top_interest[user], moments.seconds)
        return _Rows(user, item, moments, history)

    def _draw_labels(self, rng: np.random.Generator, rows: _Rows) -> _Labels:
        users, items = self._users, self._items
        click_probability = sigmoid(self._calibration.apply(self._raw_click_logit(rows)))
        price_effect = or_zero(np.log(items.price[rows.item]) - 3.0)
        buy_logit = -1.6 + 1.2 * items.bias[rows.item] + 0.8 * users.bias[rows.user] - 0.8 * price_effect
        log_watch = 3.0 + 0.5 * items.bias[rows.item] + 0.4 * or_zero(rows.moments.demand)
        buy_after_click = sigmoid(buy_logit)
        click = rng.random(BLOCK_ROWS) < click_probability
        buy = click & (rng.random(BLOCK_ROWS) < buy_after_click)
        watched = np.exp(log_watch + rng.normal(0.0, _WATCH_NOISE, BLOCK_ROWS))
        return _Labels(
            click_probability=click_probability,
            buy_probability=click_probability * buy_after_click,
            expected_watch_seconds=click_probability * np.exp(log_watch + _WATCH_NOISE**2 / 2.0),
            click=click.astype(np.int64),
            buy=buy.astype(np.int64),
            watch_seconds=np.where(click, watched, 0.0),
        )

    def _raw_click_logit(self, rows: _Rows) -> FloatArray:
        users, items = self._users, self._items
        category = items.category[rows.item]
        age_in_spans = np.minimum(np.abs(users.age[rows.user] - 36.0) / 18.0, 2.0)
        logit: FloatArray = (
            users.bias[rows.user]
            + items.bias[rows.item]
            + np.einsum("nr,nr->n", users.taste[rows.user], items.taste[rows.item])
            + 1.2 * users.interests[rows.user, category]
            + 0.2 * np.log1p(rows.history.count_in_category(items, category))
            + rows.moments.effect()
            - 0.45 * or_zero(age_in_spans**2 - 0.7)
            - 0.45 * or_zero(np.log(items.price[rows.item]) - 3.0)
        )
        return logit

    def _as_columns(self, rows: _Rows, labels: _Labels) -> pa.RecordBatch:
        moments, history = rows.moments, rows.history
        user, item = rows.user, rows.item
        return pa.RecordBatch.from_pydict(
            {
                "user_id": column(user),
                "item_id": column(item),
                "city": words(self._users.city[user], CITIES),
                "device": words(moments.device, DEVICES),
                "category": words(self._items.category[item], CATEGORIES),
                "age": self._user_columns["age"].take(user),
                "price": self._item_columns["price"].take(item),
                "ctr_7d": column(moments.ctr_7d, pa.float32()),
                "days_since_visit": column(moments.days_since_visit, pa.float32()),
                "hour": column(moments.hour),
                "event_time": column(moments.seconds * 1000, pa.timestamp("ms")),
                "tags": self._item_columns["tags"].take(item),
                "interests": self._user_columns["interests"].take(user),
                "click_seq": history.items_column(),
                "click_time_seq": history.seconds_column(),
                "cost": column(history.lengths_N + 1),
                "click": column(labels.click),
                "buy": column(labels.buy),
                "watch_seconds": column(labels.watch_seconds, pa.float32()),
            }
        )
