"""The `game` kind: replays of matches between two players, whose seven choices at each decision follow a known policy.

What a player sees is drawn from a few hidden moods; costs say which choices are legal, and a policy chooses among them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.config.errors import ConfigError
from penstock.prep.sample_data.blocks import (
    AttainableAccuracy,
    FloatArray,
    IntArray,
    SplitSummary,
    generator,
    product,
    sigmoid,
)

HEADS: Mapping[str, int] = {
    "action_type": 13,
    "unit": 60,
    "target_x": 150,
    "target_y": 150,
    "build": 200,
    "research": 200,
    "queue": 320,
}
"""What is chosen at every decision, and among how many."""
_COSTED_HEADS = ("action_type", "build", "research", "queue")
"""Heads whose choices have to be paid for; those of the others follow from units and view."""
_NUM_RESOURCES, _NUM_UNITS, _NUM_BUILDINGS, _NUM_UPGRADES, _NUM_CELLS = 12, HEADS["unit"], 64, 55, 18 * 18
_MAX_CONTROL = 4
"""A cell of the map is held by the enemy (-4) up to the player (4)."""
NUM_PAST = 6
"""Action types that are remembered."""
_MAP_SIDE = HEADS["target_x"]
_NUM_SEEN = 1 + _NUM_RESOURCES + 2 * (2 * _NUM_UNITS + _NUM_BUILDINGS + _NUM_UPGRADES) + _NUM_CELLS
"""815 features that choices follow from: seconds, resources, both sides, map. The other 78 of 893 are past actions."""

_USUAL_DECISIONS, _NUM_MOODS, _SECONDS_PER_DECISION = 500, 12, 4
_MIN_VIEW = 40
"""Cells, of 150, that a player can point at on either axis."""
_SHARPNESS = 5.0
"""Spread of the logits: the larger, the more often the best choice is made."""
_LIKING = 0.5
"""Spread of what is chosen more often whatever the state."""
_CHUNK = 64
"""Decisions that are drawn together. All of a chunk are drawn even if the game ends within it."""
_UNSEEN_GAMES, _UNSEEN_CHUNKS = 48, 8
"""The policy is brought to the same middle and spread under every seed on games that are never written."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Side:
    """What one side has, seen by the player who decides. N decisions."""

    units_NU: IntArray
    health_NU: IntArray
    """Percent; 0 where there is no such unit."""
    buildings_NB: IntArray
    upgrades_NG: IntArray

    def features(self) -> list[FloatArray]:
        counts = [np.log1p(self.units_NU), self.health_NU / 100.0, np.log1p(self.buildings_NB)]
        return [*counts, self.upgrades_NG.astype(np.float64)]

    def record(self, row: int) -> dict[str, Any]:
        """Only what is there: kinds, and beside them how many and how well."""
        units, buildings = np.flatnonzero(self.units_NU[row]), np.flatnonzero(self.buildings_NB[row])
        return {
            "units": units.tolist(),
            "counts": self.units_NU[row, units].tolist(),
            "health": self.health_NU[row, units].tolist(),
            "buildings": buildings.tolist(),
            "built": self.buildings_NB[row, buildings].tolist(),
            "upgrades": np.flatnonzero(self.upgrades_NG[row]).tolist(),
        }


@dataclass(frozen=True, slots=True)
class States:
    seconds_N: IntArray
    resources_NR: IntArray
    own: Side
    enemy: Side
    control_NC: IntArray
    view_N4: IntArray
    """Left, top, right and bottom of what can be pointed at; right and bottom are outside."""

    def seen_features(self) -> npt.NDArray[np.float32]:
        groups = [
            self.seconds_N[:, None] / 1000.0,
            np.log1p(self.resources_NR),
            *self.own.features(),
            *self.enemy.features(),
            self.control_NC / _MAX_CONTROL,
        ]
        return np.concatenate(groups, axis=1, dtype=np.float32)


def _draw_side(
    rng: np.random.Generator, groups: Iterator[tuple[FloatArray, FloatArray]], level: float
) -> Side:
    """`groups`: what the moods do to the next features, and the features' own levels."""
    effects_NU, levels_U = next(groups)
    units_NU = rng.poisson(np.exp(levels_U + level + effects_NU))
    wear_NU, _ = next(groups)
    health_NU = np.rint(75 + 12 * wear_NU + rng.normal(0.0, 6.0, wear_NU.shape)).clip(5, 100).astype(np.int64)
    health_NU[units_NU == 0] = 0
    effects_NB, levels_B = next(groups)
    buildings_NB = rng.poisson(np.exp(levels_B + (level - 0.7) + effects_NB))
    leaning_NG, levels_G = next(groups)
    upgrades_NG = rng.random(leaning_NG.shape) < sigmoid(levels_G + level - 0.7 + 1.5 * leaning_NG)
    return Side(units_NU, health_NU, buildings_NB, upgrades_NG.astype(np.int64))


class Choice(NamedTuple):
    """What was chosen at N decisions, among K, and with which probabilities; 0 where it was not legal."""

    labels_N: IntArray
    probabilities_NK: FloatArray


@dataclass(frozen=True, slots=True)
class Decisions:
    """N decisions in a row: what was seen, what was legal, what was done."""

    states: States
    past_NP: IntArray
    """The last action types, newest first; -1 before the game."""
    legal: Mapping[str, Mask]
    choices: Mapping[str, Choice]

    def lines(self, num_decisions: int) -> Iterator[bytes]:
        """A line of a replay for each of the first decisions, with what is zero left out."""
        states = self.states
        control_NC = (states.control_NC + _MAX_CONTROL + ord("0")).astype(np.uint8)
        legal = {head: np.packbits(self.legal[head], axis=1) for head in _COSTED_HEADS}
        chosen = {head: choice.labels_N.tolist() for head, choice in self.choices.items()}
        for row in range(num_decisions):
            yield _line(
                {
                    "seconds": int(states.seconds_N[row]),
                    "resources": states.resources_NR[row].tolist(),
                    "own": states.own.record(row),
                    "enemy": states.enemy.record(row),
                    "map": control_NC[row].tobytes().decode(),
                    "view": states.view_N4[row].tolist(),
                    "past": [action for action in self.past_NP[row].tolist() if action >= 0],
                    "legal": {head: bits[row].tobytes().hex() for head, bits in legal.items()},
                    "chosen": {head: labels[row] for head, labels in chosen.items()},
                }
            )


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def game_lengths(seed: int, num_decisions: int, num_games: int | None) -> list[int]:
    """Decisions of each game, at least one, together `num_decisions`: some are over soon, others take long.

    >>> game_lengths(0, 2000, 4)
    [314, 962, 428, 296]
    """
    num_games = num_games or max(1, round(num_decisions / _USUAL_DECISIONS))
    if num_games > num_decisions:
        raise ConfigError(
            f"{num_games} games need more than {num_decisions} rows; ask for more rows or fewer files"
        )
    weights = np.exp([0.5 * generator(seed, "game.lengths", game).normal() for game in range(num_games)])
    shares = np.cumsum(weights) / weights.sum() * (num_decisions - num_games)
    lengths: list[int] = (1 + np.diff(np.rint(shares).astype(np.int64), prepend=0)).tolist()
    return lengths


class Game:
    """One replay file for each player of each match."""

    planted = (
        "each of the 7 choices is drawn among the legal ones from a softmax whose logits are linear in 815 of the "
        "893 features (all but the past actions), through 12 weighted sums of them"
    )
    format = "jsonl"
    folder = "replays"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        rng = generator(seed, "game.world")
        self._loadings_FM = rng.normal(0.0, _NUM_MOODS**-0.5, (_NUM_SEEN, _NUM_MOODS))
        """How the moods show in each feature."""
        self._loadings_FM[0] = 0.0
        self._levels_F = rng.normal(0.0, 1.0, _NUM_SEEN)
        self._trend_M = rng.normal(0.0, 0.7, _NUM_MOODS)
        # Logarithms of how much there usually is of each resource.
        self._resource_levels: FloatArray = 5.0 + 0.7 * self._levels_F[1 : 1 + _NUM_RESOURCES]
        # Each choice of a costed head takes some of one resource; the first of each head is free.
        rng = generator(seed, "game.costs")
        self._resources = {head: rng.integers(0, _NUM_RESOURCES, HEADS[head]) for head in _COSTED_HEADS}
        self._costs = {
            head: np.exp(self._resource_levels[resources] + rng.normal(-0.8, 0.6, len(resources)))
            for head, resources in self._resources.items()
        }
        for amounts in self._costs.values():
            amounts[0] = 0.0
        # Logits are linear in the features: weighted sums of them, one for each mood, and the choices' own weights.
        rng = generator(seed, "game.policy")
        unseen = [
            self._draw_states("game.calibration", game, game % _UNSEEN_CHUNKS).seen_features()
            for game in range(_UNSEEN_GAMES)
        ]
        sums_NM = product(np.concatenate(unseen).astype(np.float64), self._loadings_FM)
        self._mean_M, self._spread_M = sums_NM.mean(axis=0), sums_NM.std(axis=0)
        spread = _SHARPNESS * _NUM_MOODS**-0.5
        self._weights = {head: rng.normal(0.0, spread, (_NUM_MOODS, width)) for head, width in HEADS.items()}
        self._likings = {head: rng.normal(0.0, _LIKING, width) for head, width in HEADS.items()}

    def decisions(self, game: int) -> Iterator[Decisions]:
        """Those of a game without end, in chunks: decision t depends on seed, game and t alone."""
        before_P = np.full(NUM_PAST, -1)
        for chunk in range(2**32):
            states = self._draw_states("game.states", game, chunk)
            legal = self._legal(states)
            rng = generator(self._seed, f"game.choices.{game}", chunk)
            choices = self._choose(rng, states.seen_features(), legal)
            actions = np.concatenate([before_P[::-1], choices["action_type"].labels_N])
            past_NP = np.lib.stride_tricks.sliding_window_view(actions[:-1], NUM_PAST)[:, ::-1]
            yield Decisions(states, past_NP, legal, choices)
            before_P = actions[: -NUM_PAST - 1 : -1]

    def _draw_states(self, stream: str, game: int, chunk: int) -> States:
        """Games 0 and 1 are the two sides of match 0, and so on: they share some of what lasts."""
        match = generator(self._seed, f"{stream}.match", game // 2)
        player = generator(self._seed, f"{stream}.player", game)
        lasting_M = match.normal(0.0, 0.5, _NUM_MOODS) + player.normal(0.0, 0.5, _NUM_MOODS)
        rng, first = generator(self._seed, f"{stream}.{game}", chunk), chunk * _CHUNK
        progress_N = np.tanh((first + np.arange(_CHUNK)) / 300.0) - 0.5
        passing_NM = rng.normal(0.0, 0.7, (_CHUNK, _NUM_MOODS))
        moods_NM = lasting_M + progress_N[:, None] * self._trend_M + passing_NM
        effects_NF = product(moods_NM, self._loadings_FM.T)
        widths = (1, _NUM_RESOURCES, *(_NUM_UNITS, _NUM_UNITS, _NUM_BUILDINGS, _NUM_UPGRADES) * 2, _NUM_CELLS)
        cuts = np.cumsum(widths)[:-1]
        groups = zip(np.split(effects_NF, cuts, axis=1), np.split(self._levels_F, cuts), strict=True)
        next(groups)  # seconds follow no mood
        deviations_NR, _ = next(groups)
        amounts_NR = np.exp(self._resource_levels + 0.7 * deviations_NR).astype(np.int64)
        own, enemy = _draw_side(rng, groups, 0.0), _draw_side(rng, groups, -0.8)
        own.units_NU[:, 0] += 1  # a player without any unit has lost
        own.health_NU[:, 0] = np.maximum(own.health_NU[:, 0], 50)
        control_NC = np.rint(1.5 * next(groups)[0] + rng.normal(0.0, 0.8, (_CHUNK, _NUM_CELLS)))
        sizes_N2 = rng.integers(_MIN_VIEW, _MAP_SIDE + 1, (_CHUNK, 2))
        corners_N2 = rng.integers(0, _MAP_SIDE - sizes_N2 + 1)
        return States(
            (first + np.arange(_CHUNK)) * _SECONDS_PER_DECISION,
            amounts_NR,
            own,
            enemy,
            control_NC.clip(-_MAX_CONTROL, _MAX_CONTROL).astype(np.int64),
            np.concatenate([corners_N2, corners_N2 + sizes_N2], axis=1),
        )

    def _legal(self, states: States) -> dict[str, Mask]:
        """For each head, a row of its width for each decision: what one can pay for, has, or sees."""
        found = {
            head: states.resources_NR[:, resources] >= self._costs[head]
            for head, resources in self._resources.items()
        }
        left, top, right, bottom = (edge[:, None] for edge in states.view_N4.T)
        cells = np.arange(_MAP_SIDE)
        found["unit"] = states.own.units_NU > 0
        found["target_x"] = (cells >= left) & (cells < right)
        found["target_y"] = (cells >= top) & (cells < bottom)
        return {head: found[head] for head in HEADS}

    def _choose(
        self, rng: np.random.Generator, seen_NF: npt.NDArray[np.float32], legal: Mapping[str, Mask]
    ) -> dict[str, Choice]:
        """A softmax, as a race: each choice waits for a time with its probability as the rate; the first wins."""
        sums_NM = product(seen_NF.astype(np.float64), self._loadings_FM)
        signals_NM = (sums_NM - self._mean_M) / self._spread_M
        choices = {}
        for head, mask_NK in legal.items():
            logits_NK = product(signals_NM, self._weights[head]) + self._likings[head]
            logits_NK = np.where(mask_NK, logits_NK, -np.inf)
            rates_NK = np.exp(logits_NK - logits_NK.max(axis=1, keepdims=True))
            rates_NK /= rates_NK.sum(axis=1, keepdims=True)
            labels_N = (rates_NK / rng.standard_exponential(rates_NK.shape)).argmax(axis=1)
            choices[head] = Choice(labels_N, rates_NK)
        return choices

    def write(
        self, directory: Path, num_rows: int, num_files: int | None, on_rows: Callable[[int], None]
    ) -> SplitSummary:
        accuracies = {head: AttainableAccuracy(width) for head, width in HEADS.items()}
        (directory / self.folder).mkdir()
        names = []
        for game, num_decisions in enumerate(game_lengths(self._seed, num_rows, num_files)):
            names.append(f"{self.folder}/game-{game:05d}.jsonl")
            header = {"match": f"match-{game // 2:05d}", "player": game % 2, "decisions": num_decisions}
            with (directory / names[-1]).open("wb") as file:
                file.write(_line(header))
                num_left = num_decisions
                for decisions in self.decisions(game):
                    num_taken = min(num_left, _CHUNK)
                    file.writelines(decisions.lines(num_taken))
                    for head, choice in decisions.choices.items():
                        accuracies[head].update(
                            choice.probabilities_NK[:num_taken], choice.labels_N[:num_taken]
                        )
                    num_left -= num_taken
                    if not num_left:
                        break
            on_rows(num_decisions)
        labels = {head: accuracy.summarize() for head, accuracy in accuracies.items()}
        return SplitSummary(tuple(names), num_rows, labels)
