"""How many threads a computation should use here."""

import os
from collections.abc import Mapping


def available_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_lanes() -> int:
    """Threads that may decode at once; past a few, whoever takes the batches is what everything waits for."""
    return min(4, available_cores())


def compute_threads(cores: int | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Threads of a model's computation: what OMP_NUM_THREADS says, or all cores but one.

    One core is left to the thread that makes batches. Threads of a computation wait for each other in a busy loop,
    so that sharing a core costs more than a core's worth. Measured on two cores with the quickstart: idle, one thread
    was ahead of two by 4 to 20 % (three pairs); beside other work, about sixfold in a step (one pair).
    """
    told = environment.get("OMP_NUM_THREADS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    return max(1, (cores if cores is not None else available_cores()) - 1)
