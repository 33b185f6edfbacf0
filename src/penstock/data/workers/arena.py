"""The memory that the parent and its workers share, and which part of it is in use."""

import mmap
import os
import sys
import tempfile
from bisect import insort
from typing import NamedTuple

ALIGNMENT_BYTES = 64
"""Every region and every array in one begins at a multiple of it: what Arrow and NumPy like best."""


class Region(NamedTuple):
    """A part of the arena, in bytes."""

    offset: int
    num_bytes: int


def aligned(num_bytes: int) -> int:
    """The next multiple of ALIGNMENT_BYTES.

    >>> aligned(1), aligned(64)
    (64, 64)
    """
    return -(-num_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def anonymous_file(num_bytes: int) -> int:
    """The descriptor of a file without a name: the kernel frees it with its last user, however that ends.

    Its pages take memory once they are written to.
    """
    if sys.platform == "linux":
        descriptor = os.memfd_create("penstock-workers")
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(descriptor, num_bytes)
    return descriptor


def map_arena(descriptor: int, num_bytes: int) -> memoryview:
    """The arena in this process's memory."""
    return memoryview(mmap.mmap(descriptor, num_bytes))


class Regions:
    """Which regions of an arena are taken.

    The lowest place that is large enough is taken, so that memory which was used once is used again, and an
    arena takes hardly more memory than what was in use at one time.
    """

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self._taken: list[Region] = []

    def take(self, num_bytes: int) -> Region | None:
        """A region of this size; None while there is no such place."""
        num_bytes = aligned(num_bytes)
        start = 0
        for region in [*self._taken, Region(self.num_bytes, 0)]:
            if region.offset - start >= num_bytes:
                taken = Region(start, num_bytes)
                insort(self._taken, taken)
                return taken
            start = region.offset + region.num_bytes
        return None

    def give_back(self, region: Region) -> None:
        """Make a region free again."""
        self._taken.remove(region)
