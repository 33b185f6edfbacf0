"""Random orders that depend on nothing but what they are derived from."""

import zlib

import numpy as np
from numpy.typing import NDArray


def derive_generator(purpose: str, seed: int, *place: int) -> np.random.Generator:
    """A generator for one purpose at one place, such as ("blocks", seed, epoch).

    Equal arguments give equal numbers, whatever was drawn before; different purposes are independent.
    """
    return np.random.default_rng([zlib.crc32(purpose.encode()), seed % 2**64, *place])


def block_order(num_blocks: int, seed: int | None, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch reads its blocks: as they stand, or permuted by the seed."""
    if seed is None:
        return np.arange(num_blocks)
    return derive_generator("blocks", seed, epoch).permutation(num_blocks)
