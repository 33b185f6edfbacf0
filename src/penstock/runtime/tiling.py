"""The old way to say `data_config.input_tile`: a number in the environment."""

import os
from collections.abc import Mapping

from penstock.config.errors import ConfigError

VARIABLE = "INPUT_TILE"
TILES = {"": None, "0": None, "1": None, "2": "inputs", "3": "embeddings"}


def tile_from_environment(environment: Mapping[str, str] = os.environ) -> str | None:
    """The tiling that INPUT_TILE asks for: 2 is inputs, 3 is embeddings; None where it asks for none."""
    text = environment.get(VARIABLE, "")
    if text not in TILES:
        raise ConfigError(
            f"environment variable {VARIABLE} is '{text}'; expected 2 (inputs) or 3 (embeddings)"
        )
    return TILES[text]
