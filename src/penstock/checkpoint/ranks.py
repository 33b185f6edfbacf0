"""What ranks do together while saving and opening: fail together, or go on together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from penstock.config.errors import CheckpointError
from penstock.runtime.collectives import Collectives, OneProcess
from penstock.runtime.world import World

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This rank and its way to talk to the others."""

    world: World = field(default_factory=World)
    collectives: Collectives = field(default_factory=OneProcess)

    @property
    def alone(self) -> bool:
        """True in a world of one process."""
        return self.world.num_ranks == 1

    def together(self, action: Callable[[], Result]) -> Result:
        """Run `action` on this rank; when it fails on any rank, every rank raises the first rank's reason.

        Without it a full disk on one rank would leave the others waiting.
        """
        problem, result = "", None
        try:
            result = action()
        except (OSError, CheckpointError) as error:
            problem = str(error)
        problems = self.tell_all(problem)
        if any(problems):
            raise CheckpointError(next(filter(None, problems)))
        return result  # type: ignore[return-value]  # no problem anywhere, so this rank has its result

    def first_only(self, action: Callable[[], None]) -> None:
        """Run `action` on the first rank while the others wait for its outcome."""
        self.together(action if self.world.is_first else lambda: None)

    def tell_all(self, text: str) -> list[str]:
        """Every rank's text, in rank order, on all ranks."""
        content = np.frombuffer(text.encode(), dtype=np.uint8)
        return [part.tobytes().decode() for part in self.collectives.gather(content)]

    def share_of(self, items: Sequence[str]) -> Sequence[str]:
        """This rank's part of work that is divided among all."""
        return items[self.world.rank :: self.world.num_ranks]
