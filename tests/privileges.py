"""For tests of files that exist, but not for us."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = 65534


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read and write everything: for the length of the block, be somebody else.

    Not only in effect: os.access asks for the real user.
    """
    is_root = os.geteuid() == 0
    if is_root:
        os.setresuid(NOBODY, NOBODY, 0)  # the last one is what allows the way back
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
