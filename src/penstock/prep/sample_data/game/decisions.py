"""The decisions of one player in one match, in order, some at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.prep.sample_data.draws import IntArray, generator
from penstock.prep.sample_data.game.legal import Costs, Mask
from penstock.prep.sample_data.game.policy import Choice, Policy
from penstock.prep.sample_data.game.rules import NUM_PAST
from penstock.prep.sample_data.game.states import NUM_MOODS, States, World, past_features

_CHUNK = 64
"""Decisions that are drawn together. All of a chunk are drawn even if the game ends within it."""
_UNSEEN_GAMES = 48
_UNSEEN_CHUNKS = 8
"""The policy is brought to the same middle and spread under every seed on games that are never written."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """N decisions in a row: what was seen, what was legal, what was done."""

    states: States
    past_NP: IntArray
    """The last action types, newest first; -1 before the game."""
    legal: Mapping[str, Mask]
    choices: Mapping[str, Choice]

    def features(self) -> npt.NDArray[np.float32]:
        """All 893, as the extract function of the example gives them."""
        return np.concatenate([self.states.seen_features(), past_features(self.past_NP)], axis=1)


class Players:
    """Everyone who plays under one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._world = World(seed)
        self._costs = Costs(seed, self._world.resource_levels)
        places = [(game, game % _UNSEEN_CHUNKS) for game in range(_UNSEEN_GAMES)]
        unseen = [self._draw_states("game.calibration", game, chunk) for game, chunk in places]
        features_NF = np.concatenate([states.seen_features() for states in unseen])
        self._policy = Policy(seed, self._world, features_NF)

    def decisions(self, game: int) -> Iterator[Decisions]:
        """Those of a game without end, in chunks: decision t depends on seed, game and t alone."""
        before_P = np.full(NUM_PAST, -1)
        for chunk in range(2**32):
            states = self._draw_states("game.states", game, chunk)
            legal = self._costs.legal(states)
            rng = generator(self._seed, f"game.choices.{game}", chunk)
            choices = self._policy.choose(rng, states.seen_features(), legal)
            actions = np.concatenate([before_P[::-1], choices["action_type"].labels_N])
            past_NP = np.lib.stride_tricks.sliding_window_view(actions[:-1], NUM_PAST)[:, ::-1]
            yield Decisions(states, past_NP, legal, choices)
            before_P = actions[: -NUM_PAST - 1 : -1]

    def _draw_states(self, stream: str, game: int, chunk: int) -> States:
        """Games 0 and 1 are the two sides of match 0, and so on: they share some of what lasts."""
        match = generator(self._seed, f"{stream}.match", game // 2)
        player = generator(self._seed, f"{stream}.player", game)
        lasting_M = match.normal(0.0, 0.5, NUM_MOODS) + player.normal(0.0, 0.5, NUM_MOODS)
        rng = generator(self._seed, f"{stream}.{game}", chunk)
        moods_NM = self._world.moods(rng, chunk * _CHUNK, _CHUNK, lasting_M)
        return self._world.draw(rng, chunk * _CHUNK, moods_NM)
