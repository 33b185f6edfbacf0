"""Decisions -> lines of a replay file: JSON, with what is zero left out."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.prep.sample_data.game.decisions import Decisions
from penstock.prep.sample_data.game.rules import COSTED_HEADS, MOST_CONTROL
from penstock.prep.sample_data.game.states import Side


def header_line(game: int, num_decisions: int) -> bytes:
    """The first line: which match, which of its two players, how many decisions."""
    return _line({"match": f"match-{game // 2:05d}", "player": game % 2, "decisions": num_decisions})


def decision_lines(decisions: Decisions, num_decisions: int) -> Iterator[bytes]:
    """A line for each of the first decisions."""
    states = decisions.states
    control_NC = (states.control_NC + MOST_CONTROL + ord("0")).astype(np.uint8)
    legal = {head: np.packbits(decisions.legal[head], axis=1) for head in COSTED_HEADS}
    chosen = {head: choice.labels_N.tolist() for head, choice in decisions.choices.items()}
    for row in range(num_decisions):
        yield _line(
            {
                "seconds": int(states.seconds_N[row]),
                "resources": states.resources_NR[row].tolist(),
                "own": _side(states.own, row),
                "enemy": _side(states.enemy, row),
                "map": control_NC[row].tobytes().decode(),
                "view": states.view_N4[row].tolist(),
                "past": [action for action in decisions.past_NP[row].tolist() if action >= 0],
                "legal": {head: bits[row].tobytes().hex() for head, bits in legal.items()},
                "chosen": {head: labels[row] for head, labels in chosen.items()},
            }
        )


def _side(side: Side, row: int) -> dict[str, Any]:
    """Only what is there: kinds, and beside them how many and how well."""
    units, buildings = np.flatnonzero(side.units_NU[row]), np.flatnonzero(side.buildings_NB[row])
    return {
        "units": units.tolist(),
        "counts": side.units_NU[row, units].tolist(),
        "health": side.health_NU[row, units].tolist(),
        "buildings": buildings.tolist(),
        "built": side.buildings_NB[row, buildings].tolist(),
        "upgrades": np.flatnonzero(side.upgrades_NG[row]).tolist(),
    }


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
