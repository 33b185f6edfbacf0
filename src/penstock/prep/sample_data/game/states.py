"""What a player sees at each decision, drawn from a few hidden moods: how the match goes, and how the player plays."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.prep.sample_data.draws import FloatArray, IntArray, generator, product, sigmoid
from penstock.prep.sample_data.game.rules import (
    HEADS,
    MAP_SIDE,
    MOST_CONTROL,
    NUM_BUILDINGS,
    NUM_CELLS,
    NUM_RESOURCES,
    NUM_SEEN,
    NUM_UNITS,
    NUM_UPGRADES,
)

NUM_MOODS = 12
_SECONDS_PER_DECISION = 4
_LEAST_VIEW = 40
"""Cells, of 150, that a player can point at on either axis."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one side has, seen by the player who decides. N decisions."""

    units_NU: IntArray
    health_NU: IntArray
    """Percent; 0 where there is no such unit."""
    buildings_NB: IntArray
    upgrades_NG: IntArray

    def features(self) -> list[FloatArray]:
        """Counts by their logarithm, health as a fraction, upgrades as they are."""
        counts = [np.log1p(self.units_NU), self.health_NU / 100.0, np.log1p(self.buildings_NB)]
        return [*counts, self.upgrades_NG.astype(np.float64)]


@dataclass(frozen=True, slots=True)
class States:
    """What is seen at N decisions in a row."""

    seconds_N: IntArray
    resources_NR: IntArray
    own: Side
    enemy: Side
    control_NC: IntArray
    view_N4: IntArray
    """Left, top, right and bottom of what can be pointed at; right and bottom are outside."""

    def seen_features(self) -> npt.NDArray[np.float32]:
        """All features but the past actions."""
        groups = [
            self.seconds_N[:, None] / 1000.0,
            np.log1p(self.resources_NR),
            *self.own.features(),
            *self.enemy.features(),
            self.control_NC / MOST_CONTROL,
        ]
        return np.concatenate(groups, axis=1, dtype=np.float32)


def past_features(past_NP: IntArray) -> npt.NDArray[np.float32]:
    """One 1 for each past action type; -1 stands for one before the game."""
    is_chosen: npt.NDArray[np.bool_] = past_NP[:, :, None] == np.arange(HEADS["action_type"])
    return is_chosen.reshape(len(past_NP), -1).astype(np.float32)


class World:
    """How the moods show in what is seen; one for each seed."""

    def __init__(self, seed: int) -> None:
        rng = generator(seed, "game.world")
        self.loadings_FM = rng.normal(0.0, NUM_MOODS**-0.5, (NUM_SEEN, NUM_MOODS))
        """Of each feature."""
        self.loadings_FM[0] = 0.0
        self._levels_F = rng.normal(0.0, 1.0, NUM_SEEN)
        self._trend_M = rng.normal(0.0, 0.7, NUM_MOODS)

    @property
    def resource_levels(self) -> FloatArray:
        """Logarithms of how much there usually is of each resource."""
        return 5.0 + 0.7 * self._levels_F[1 : 1 + NUM_RESOURCES]

    def moods(
        self, rng: np.random.Generator, first: int, num_decisions: int, lasting_M: FloatArray
    ) -> FloatArray:
        """Those of decisions in a row: what lasts over the game, what changes with time, and what comes and goes."""
        progress_N = np.tanh((first + np.arange(num_decisions)) / 300.0) - 0.5
        passing_NM = rng.normal(0.0, 0.7, (num_decisions, NUM_MOODS))
        moods_NM: FloatArray = lasting_M + progress_N[:, None] * self._trend_M + passing_NM
        return moods_NM

    def draw(self, rng: np.random.Generator, first: int, moods_NM: FloatArray) -> States:
        """What is seen in these moods, from the decision `first` of a game on."""
        num_decisions = len(moods_NM)
        effects = _Cursor(product(moods_NM, self.loadings_FM.T), self._levels_F)
        effects.take(1)
        deviations_NR, _ = effects.take(NUM_RESOURCES)
        amounts_NR = np.exp(self.resource_levels + 0.7 * deviations_NR).astype(np.int64)
        own, enemy = _draw_side(rng, effects, 0.0), _draw_side(rng, effects, -0.8)
        own.units_NU[:, 0] += 1  # a player without any unit has lost
        own.health_NU[:, 0] = np.maximum(own.health_NU[:, 0], 50)
        control_NC = np.rint(
            1.5 * effects.take(NUM_CELLS)[0] + rng.normal(0.0, 0.8, (num_decisions, NUM_CELLS))
        )
        return States(
            (first + np.arange(num_decisions)) * _SECONDS_PER_DECISION,
            amounts_NR,
            own,
            enemy,
            control_NC.clip(-MOST_CONTROL, MOST_CONTROL).astype(np.int64),
            _draw_view(rng, num_decisions),
        )


class _Cursor:
    """Hands out what the moods do to the features, group by group, with the features' own levels."""

    def __init__(self, effects_NF: FloatArray, levels_F: FloatArray) -> None:
        self._effects_NF = effects_NF
        self._levels_F = levels_F
        self._next = 0

    def take(self, width: int) -> tuple[FloatArray, FloatArray]:
        """Of the next features."""
        start, self._next = self._next, self._next + width
        return self._effects_NF[:, start : self._next], self._levels_F[start : self._next]


def _draw_side(rng: np.random.Generator, effects: _Cursor, level: float) -> Side:
    units_NU = _draw_counts(rng, effects.take(NUM_UNITS), level)
    wear_NU, _ = effects.take(NUM_UNITS)
    health_NU = np.rint(75 + 12 * wear_NU + rng.normal(0.0, 6.0, wear_NU.shape)).clip(5, 100).astype(np.int64)
    health_NU[units_NU == 0] = 0
    buildings_NB = _draw_counts(rng, effects.take(NUM_BUILDINGS), level - 0.7)
    leaning_NG, levels_G = effects.take(NUM_UPGRADES)
    upgrades_NG = rng.random(leaning_NG.shape) < sigmoid(levels_G + level - 0.7 + 1.5 * leaning_NG)
    return Side(units_NU, health_NU, buildings_NB, upgrades_NG.astype(np.int64))


def _draw_counts(rng: np.random.Generator, taken: tuple[FloatArray, FloatArray], level: float) -> IntArray:
    effects_NK, levels_K = taken
    return rng.poisson(np.exp(levels_K + level + effects_NK))


def _draw_view(rng: np.random.Generator, num_decisions: int) -> IntArray:
    sizes_N2 = rng.integers(_LEAST_VIEW, MAP_SIDE + 1, (num_decisions, 2))
    corners_N2 = rng.integers(0, MAP_SIDE - sizes_N2 + 1)
    return np.concatenate([corners_N2, corners_N2 + sizes_N2], axis=1)
