"""Waiting for a condition, however busy the machine is."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Ask again and again; minutes pass before it counts as never."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds:g} s"
        time.sleep(0.005)
