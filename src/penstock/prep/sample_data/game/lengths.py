"""How long each game is: some are over soon, others take long."""

import numpy as np

from penstock.config.errors import ConfigError
from penstock.prep.sample_data.draws import generator

USUAL_DECISIONS = 500
_SPREAD = 0.5


def game_lengths(seed: int, num_decisions: int, num_games: int | None) -> list[int]:
    """Decisions of each game, at least one, together `num_decisions`.

    >>> game_lengths(0, 2000, 4)
    [314, 962, 428, 296]
    """
    num_games = num_games or max(1, round(num_decisions / USUAL_DECISIONS))
    if num_games > num_decisions:
        raise ConfigError(
            f"{num_games} games need more than {num_decisions} rows; ask for more rows or fewer files"
        )
    weights = np.exp([_SPREAD * generator(seed, "game.lengths", game).normal() for game in range(num_games)])
    shares = np.cumsum(weights) / weights.sum() * (num_decisions - num_games)
    lengths: list[int] = (1 + np.diff(np.rint(shares).astype(np.int64), prepend=0)).tolist()
    return lengths
