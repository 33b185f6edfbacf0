"""What this process is: rank, cores, packages."""

import pytest

from penstock.config.errors import ConfigError
from penstock.runtime.world import World, compute_threads, tile_from_environment


def test_from_torchrun():
    environment = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost"}
    assert World.from_environment(environment) == World(rank=3, num_ranks=8, local_rank=1)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"RANK": "8", "WORLD_SIZE": "8", "MASTER_ADDR": "x"}, "rank 8 does not fit a world of 8"),
        ({"WORLD_SIZE": "2"}, "MASTER_ADDR is not set; start the ranks with torchrun"),
        ({"RANK": "one"}, "RANK is 'one'; expected a whole number"),
    ],
)
def test_a_wrong_environment_is_refused_in_one_line(environment, text):
    with pytest.raises(ConfigError, match=text):
        World.from_environment(environment)


@pytest.mark.parametrize(
    ("cores", "environment", "threads"),
    [
        (1, {}, 1),
        (16, {}, 15),
        (2, {"OMP_NUM_THREADS": "2"}, 2),
        (4, {"OMP_NUM_THREADS": "many"}, 3),
    ],
)
def test_one_core_is_left_for_the_data_unless_the_user_sets_the_threads(cores, environment, threads):
    assert compute_threads(cores, environment) == threads


@pytest.mark.parametrize(("text", "tile"), [("2", "inputs"), ("3", "embeddings"), ("1", None), ("", None)])
def test_input_tile_of_older_scripts(text, tile):
    assert tile_from_environment({"INPUT_TILE": text}) == tile


def test_another_input_tile_is_refused():
    with pytest.raises(ConfigError, match=r"INPUT_TILE is 'two'; expected 2 \(inputs\) or 3 \(embeddings\)"):
        tile_from_environment({"INPUT_TILE": "two"})
