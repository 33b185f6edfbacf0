"""Which choices are open in a state: those one can pay for, units one has, and places one sees."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from penstock.prep.sample_data.draws import FloatArray, generator
from penstock.prep.sample_data.game.rules import COSTED_HEADS, HEADS, MAP_SIDE, NUM_RESOURCES
from penstock.prep.sample_data.game.states import States

Mask = npt.NDArray[np.bool_]


class Costs:
    """Each choice of a costed head takes some of one resource; the first of each head is free."""

    def __init__(self, seed: int, resource_levels: FloatArray) -> None:
        rng = generator(seed, "game.costs")
        self._resources = {head: rng.integers(0, NUM_RESOURCES, HEADS[head]) for head in COSTED_HEADS}
        self._amounts = {
            head: np.exp(resource_levels[resources] + rng.normal(-0.8, 0.6, len(resources)))
            for head, resources in self._resources.items()
        }
        for amounts in self._amounts.values():
            amounts[0] = 0.0

    def legal(self, states: States) -> Mapping[str, Mask]:
        """For each head, a row of its width for each decision."""
        paid = {
            head: states.resources_NR[:, resources] >= self._amounts[head]
            for head, resources in self._resources.items()
        }
        left, top, right, bottom = (edge[:, None] for edge in states.view_N4.T)
        cells = np.arange(MAP_SIDE)
        seen = {
            "unit": states.own.units_NU > 0,
            "target_x": (cells >= left) & (cells < right),
            "target_y": (cells >= top) & (cells < bottom),
        }
        return {head: (paid | seen)[head] for head in HEADS}
