"""Replay files of `penstock sample-data --kind game` -> samples: 893 features, 7 labels, 7 masks for each decision.

A run file names it as `extract: replays:samples`. It is called once for each file, and only reads that file.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

WIDTHS = {
    "action_type": 13,
    "unit": 60,
    "target_x": 150,
    "target_y": 150,
    "build": 200,
    "research": 200,
    "queue": 320,
}
ACTIONS, PAST, UNITS, BUILDINGS, UPGRADES, CELLS = 13, 6, 60, 64, 55, 18 * 18
SIDE = 2 * UNITS + BUILDINGS + UPGRADES
NUM_FEATURES = 1 + 12 + 2 * SIDE + CELLS + PAST * ACTIONS  # 893


def samples(path: str | Path) -> Iterator[dict[str, Any]]:
    """The decisions of a replay. `match` says which belong together: a match has a replay of either player."""
    with open(path, "rb") as lines:
        match = json.loads(next(lines))["match"]
        for line in lines:
            decision = json.loads(line)
            yield {
                "features": features(decision),
                "labels": decision["chosen"],
                "masks": masks(decision),
                "match": match,
            }


def features(decision: Mapping[str, Any]) -> np.ndarray:
    """What the player sees, as numbers of about the same size: seconds, resources, both sides, map, past actions."""
    values = np.zeros(NUM_FEATURES, np.float32)
    values[0] = decision["seconds"] / 1000
    values[1:13] = np.log1p(decision["resources"])
    fill_side(values[13 : 13 + SIDE], decision["own"])
    fill_side(values[13 + SIDE : 13 + 2 * SIDE], decision["enemy"])
    cells = np.frombuffer(decision["map"].encode(), np.uint8)  # "0" is the enemy's, "8" the player's own
    values[13 + 2 * SIDE :][:CELLS] = cells.astype(np.float32) / 4 - (ord("0") / 4 + 1)
    for index, action in enumerate(decision["past"]):
        values[13 + 2 * SIDE + CELLS + index * ACTIONS + action] = 1
    return values


def fill_side(values: np.ndarray, side: Mapping[str, Any]) -> None:
    """What one side has; a replay names only what is there."""
    units, health, rest = values[:UNITS], values[UNITS : 2 * UNITS], values[2 * UNITS :]
    units[side["units"]] = np.log1p(side["counts"])
    health[side["units"]] = np.divide(side["health"], 100)
    rest[side["buildings"]] = np.log1p(side["built"])
    rest[BUILDINGS:][side["upgrades"]] = 1


def masks(decision: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Which choices are legal: units the player has, positions in view, and what the game says one can pay for."""
    legal = {head: np.zeros(width, np.int8) for head, width in WIDTHS.items()}
    left, top, right, bottom = decision["view"]
    legal["unit"][decision["own"]["units"]] = 1
    legal["target_x"][left:right] = 1
    legal["target_y"][top:bottom] = 1
    for head, digits in decision["legal"].items():  # one bit for each choice
        legal[head][:] = np.unpackbits(np.frombuffer(bytes.fromhex(digits), np.uint8), count=WIDTHS[head])
    return legal
