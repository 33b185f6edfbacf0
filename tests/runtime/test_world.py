"""The world, from torchrun's environment or alone."""

import pytest

from penstock.config.errors import ConfigError
from penstock.runtime.world import World


def test_alone_without_torchrun():
    assert World.from_environment({}) == World(rank=0, num_ranks=1)


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
