"""How ranks exchange numbers, without saying over what: NumPy in, NumPy out.

Metrics, checkpoints and loops receive a `Collectives` and never import torch.distributed. `OneProcess` serves the
ordinary case; `penstock.distributed` implements the same over torch.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Collectives(Protocol):
    """What ranks can do together. Every rank must call, in the same order."""

    def sum(self, array: Array) -> Array:
        """The element-wise sum over ranks, the same on all."""
        ...

    def gather(self, array: Array) -> list[Array]:
        """Every rank's array, in rank order, the same on all; lengths may differ."""
        ...

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        """Send `parts[r]` to rank r; receive one part from each rank, in rank order."""
        ...

    def barrier(self) -> None: ...


class OneProcess:
    def sum(self, array: Array) -> Array:
        return np.array(array, copy=True)

    def gather(self, array: Array) -> list[Array]:
        return [array]

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        (part,) = parts
        return [part]

    def barrier(self) -> None:
        pass
