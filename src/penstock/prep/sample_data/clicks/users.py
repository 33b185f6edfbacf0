"""The users of the `clicks` data: what one can see of them, and what only the planted model knows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.prep.sample_data.arrow_columns import Column, column, maps, words
from penstock.prep.sample_data.clicks.vocabulary import CATEGORIES, CITIES
from penstock.prep.sample_data.draws import FloatArray, IntArray, generator, zipf_ids

NUM_USERS = 10_000
TASTE_RANK = 4

_MAX_INTERESTS = 4
_AGE_MISSING = 0.08
_BIAS_SCALE = 0.25
_CITY_BIAS_SCALE = 0.35
_CITY_TASTE_SCALE = 0.65
_OWN_TASTE_SCALE = 0.12


@dataclass(frozen=True, slots=True)
class Users:
    """One entry per user id. Taste comes mostly from the city, so that rare users can be understood too."""

    city: IntArray
    age: FloatArray
    """NaN where the user did not tell."""
    interests: FloatArray
    """(users, categories): weight of each interest, 0 where there is none."""
    top_interest: IntArray
    bias: FloatArray
    taste: FloatArray
    """(users, TASTE_RANK)"""

    @classmethod
    def draw(cls, seed: int) -> "Users":
        """The users of this seed."""
        rng = generator(seed, "clicks.users")
        city = zipf_ids(rng, len(CITIES), NUM_USERS)
        age = np.clip(np.rint(rng.normal(38.0, 13.0, NUM_USERS)), 16, 80)
        age[rng.random(NUM_USERS) < _AGE_MISSING] = np.nan
        interests = _draw_interests(rng)
        city_bias = rng.normal(0.0, _CITY_BIAS_SCALE, len(CITIES))
        city_taste = rng.normal(0.0, _CITY_TASTE_SCALE, (len(CITIES), TASTE_RANK))
        return cls(
            city=city,
            age=age,
            interests=interests,
            top_interest=interests.argmax(axis=1),
            bias=city_bias[city] + rng.normal(0.0, _BIAS_SCALE, NUM_USERS),
            taste=city_taste[city] + rng.normal(0.0, _OWN_TASTE_SCALE, (NUM_USERS, TASTE_RANK)),
        )

    def age_column(self) -> Column:
        """int32, null where unknown."""
        return column(self.age, pa.int32())

    def interests_column(self) -> Column:
        """map<string, float>: category -> weight."""
        user, category = np.nonzero(self.interests)
        offsets = np.searchsorted(user, np.arange(NUM_USERS + 1))
        keys = words(category, CATEGORIES).cast(pa.string())
        return maps(offsets, keys, column(self.interests[user, category], pa.float32()))


def _draw_interests(rng: np.random.Generator) -> FloatArray:
    """Between one and four categories per user, popular ones more often, with weights from 0.1 to 1."""
    count = rng.integers(1, _MAX_INTERESTS + 1, NUM_USERS)
    popularity = -np.log(np.arange(len(CATEGORIES)) + 3.0)
    order = (popularity + rng.gumbel(size=(NUM_USERS, len(CATEGORIES)))).argsort(axis=1)[:, ::-1]
    place_in_order = order.argsort(axis=1)
    weights = rng.integers(1, 11, (NUM_USERS, len(CATEGORIES))) / 10.0
    return np.where(place_in_order < count[:, None], weights, 0.0)
