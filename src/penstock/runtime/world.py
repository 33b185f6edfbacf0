"""Which of how many processes this one is. Read from the environment once, then passed on as a value."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from penstock.config.errors import ConfigError


@dataclass(frozen=True, slots=True)
class World:
    """This process among its peers; one process alone is rank 0 of 1."""

    rank: int = 0
    num_ranks: int = 1
    local_rank: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.num_ranks:
            raise ConfigError(
                f"rank {self.rank} does not fit a world of {self.num_ranks}; "
                "RANK must be at least 0 and below WORLD_SIZE (torchrun sets both)"
            )

    @property
    def is_first(self) -> bool:
        """True on the one rank that writes what all ranks share."""
        return self.rank == 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The world that torchrun describes, or one process alone."""
        numbers = {}
        for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)):
            text = environment.get(name, str(default))
            if not text.isdecimal():
                raise ConfigError(f"environment variable {name} is '{text}'; expected a whole number")
            numbers[name] = int(text)
        if numbers["WORLD_SIZE"] > 1 and "MASTER_ADDR" not in environment:
            raise ConfigError(
                "WORLD_SIZE is above 1 but MASTER_ADDR is not set; start the ranks with torchrun"
            )
        return cls(numbers["RANK"], numbers["WORLD_SIZE"], numbers["LOCAL_RANK"])
