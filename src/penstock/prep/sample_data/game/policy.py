"""The planted policy: which of the legal choices is made, and with what probability each could have been."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.prep.sample_data.draws import FloatArray, IntArray, generator, product
from penstock.prep.sample_data.game.legal import Mask
from penstock.prep.sample_data.game.rules import HEADS
from penstock.prep.sample_data.game.states import NUM_MOODS, World

_SHARPNESS = 5.0
"""Spread of the logits: the larger, the more often the best choice is made."""
_LIKING = 0.5
"""Spread of what is chosen more often whatever the state."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen at N decisions, among K."""

    labels_N: IntArray
    probabilities_NK: FloatArray
    """With which each could have been chosen; 0 where it was not legal."""


class Policy:
    """Logits are linear in the features: weighted sums of them, one for each mood, and the choices' own weights."""

    def __init__(self, seed: int, world: World, unseen_NF: npt.NDArray[np.float32]) -> None:
        rng = generator(seed, "game.policy")
        self._loadings_FM = world.loadings_FM
        sums_NM = self._sums(unseen_NF)
        self._mean_M, self._spread_M = sums_NM.mean(axis=0), sums_NM.std(axis=0)
        self._weights = {
            head: rng.normal(0.0, _SHARPNESS * NUM_MOODS**-0.5, (NUM_MOODS, width))
            for head, width in HEADS.items()
        }
        self._likings = {head: rng.normal(0.0, _LIKING, width) for head, width in HEADS.items()}

    def choose(
        self, rng: np.random.Generator, seen_NF: npt.NDArray[np.float32], legal: Mapping[str, Mask]
    ) -> dict[str, Choice]:
        """Draw one legal choice of each head for each decision."""
        signals_NM = (self._sums(seen_NF) - self._mean_M) / self._spread_M
        choices = {}
        for head, mask_NK in legal.items():
            logits_NK = product(signals_NM, self._weights[head]) + self._likings[head]
            choices[head] = _draw(rng, np.where(mask_NK, logits_NK, -np.inf))
        return choices

    def _sums(self, seen_NF: npt.NDArray[np.float32]) -> FloatArray:
        return product(seen_NF.astype(np.float64), self._loadings_FM)


def _draw(rng: np.random.Generator, logits_NK: FloatArray) -> Choice:
    """A softmax, as a race: each choice waits for a time with its probability as the rate, and the first one wins."""
    rates_NK = np.exp(logits_NK - logits_NK.max(axis=1, keepdims=True))
    rates_NK /= rates_NK.sum(axis=1, keepdims=True)
    labels_N = (rates_NK / rng.standard_exponential(rates_NK.shape)).argmax(axis=1)
    return Choice(labels_N, rates_NK)
