"""What there is in the game: choices, kinds of units, cells of the map, and where each stands among the features."""

from collections.abc import Mapping

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

COSTED_HEADS = ("action_type", "build", "research", "queue")
"""Heads whose choices have to be paid for; those of the others follow from units and view."""

NUM_RESOURCES = 12
NUM_UNITS = HEADS["unit"]
NUM_BUILDINGS = 64
NUM_UPGRADES = 55
NUM_CELLS = 18 * 18
MOST_CONTROL = 4
"""A cell of the map is held by the enemy (-4) up to the player (4)."""
NUM_PAST = 6
"""Action types that are remembered."""
MAP_SIDE = HEADS["target_x"]

NUM_SEEN = 1 + NUM_RESOURCES + 2 * (2 * NUM_UNITS + NUM_BUILDINGS + NUM_UPGRADES) + NUM_CELLS
"""Features that choices follow from: seconds, resources, both sides, map."""
NUM_FEATURES = NUM_SEEN + NUM_PAST * HEADS["action_type"]
"""893: those, and the past action types, which tell nothing that the others do not."""
