"""A learning rate that never changes, and ends the training at a known step: a signal from outside comes at a moment
that depends on how fast the machine is, perhaps after the last step."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.end_to_end.conftest import SMALL_RUN

STOP = "PENSTOCK_TEST_STOP"
TRAIN_CONFIG: dict[str, Any] = SMALL_RUN["train_config"]
STOPPABLE: dict[str, Any] = {
    **TRAIN_CONFIG,
    "dense_optimizer": {
        **TRAIN_CONFIG["dense_optimizer"],
        "custom_learning_rate": {"import_path": "tests.end_to_end.stopping_rate:make"},
    },
}
"""The train_config of the small run, with this rate."""


def stop_after(step: int, number: signal.Signals) -> dict[str, str]:
    """The environment of a process that sends itself a signal in the step after this one, and finds this module."""
    root = Path(__file__).parents[2]
    # With src: whichever checkout is installed, this one is tested.
    return {STOP: f"{step} {number.value}", "PYTHONPATH": f"{root}:{root / 'src'}"}


def make() -> Callable[[float, int], float]:
    """The schedule of the run file."""
    pending = [tuple(map(int, os.environ[STOP].split()))] if STOP in os.environ else []

    def rate(base: float, completed: int) -> float:
        if pending and completed == pending[0][0]:
            os.kill(os.getpid(), pending.pop()[1])
        return base

    return rate
