"""INPUT_TILE in the environment."""

import pytest

from penstock.config.errors import ConfigError
from penstock.runtime.tiling import tile_from_environment


@pytest.mark.parametrize(("text", "tile"), [("2", "inputs"), ("3", "embeddings"), ("1", None), ("", None)])
def test_numbers_of_older_scripts(text, tile):
    assert tile_from_environment({"INPUT_TILE": text}) == tile


def test_absent_asks_for_nothing():
    assert tile_from_environment({}) is None


def test_nonsense_is_refused():
    with pytest.raises(ConfigError, match=r"INPUT_TILE is 'two'; expected 2 \(inputs\) or 3 \(embeddings\)"):
        tile_from_environment({"INPUT_TILE": "two"})
