"""What workers do here: they wait at a gate that the test opens, so that how fast anybody is does not matter."""

import os
import signal
import time
from pathlib import Path

import pyarrow as pa

from tests.batching.workers.functions import numbers_of

GATE = "PENSTOCK_TEST_GATE"
"""In the environment: a file that is there when the gate is open."""


def wait_at_gate() -> None:
    while not Path(os.environ[GATE]).exists():
        time.sleep(0.005)


def waits_from_10(batch: pa.RecordBatch) -> list[int]:
    if numbers_of(batch)[0] >= 10:
        wait_at_gate()
    return numbers_of(batch)


def waits_from_30(batch: pa.RecordBatch) -> list[int]:
    if numbers_of(batch)[0] >= 30:
        wait_at_gate()
    return numbers_of(batch)


def kills_itself_at_20(batch: pa.RecordBatch) -> list[int]:
    if 20 in numbers_of(batch):
        wait_at_gate()
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers_of(batch)
