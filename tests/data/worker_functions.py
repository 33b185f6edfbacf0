"""What workers do in the tests: they must find it in a module."""

import ctypes
import os
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError


def numbers_of(batch: pa.RecordBatch) -> list[int]:
    found: list[int] = batch.column("number").to_pylist()
    return found


def bad_seven(batch: pa.RecordBatch) -> list[int]:
    if 7 in numbers_of(batch):
        raise DataError.at("is bad", file="a.parquet", row=7, column="number", value=7)
    return numbers_of(batch)


def _hits(batch: pa.RecordBatch, number: int) -> bool:
    return number in numbers_of(batch)


def kills_itself_once_at_20(path: str, batch: pa.RecordBatch) -> list[int]:
    """Leave a file at the path, and end; whoever finds the file does the work."""
    if _hits(batch, 20) and not os.path.exists(path):
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers_of(batch)


def kills_itself_at_20(path: str, batch: pa.RecordBatch) -> list[int]:
    """As soon as there is a file at the path."""
    if _hits(batch, 20):
        wait_for(path)
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers_of(batch)


def kills_itself_late_at_20(batch: pa.RecordBatch) -> list[int]:
    """Late enough for its parent to have looked at its memory."""
    if _hits(batch, 20):
        time.sleep(1.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers_of(batch)


def crashes_at_20(batch: pa.RecordBatch) -> list[int]:
    if _hits(batch, 20):
        ctypes.string_at(0)
    return numbers_of(batch)


def exits_at_20(batch: pa.RecordBatch) -> list[int]:
    if _hits(batch, 20):
        os._exit(3)
    return numbers_of(batch)


def hangs_at_20(batch: pa.RecordBatch) -> list[int]:
    if _hits(batch, 20):
        sleep_for_ever()
    return numbers_of(batch)


def hangs_at_20_and_says_so(path: str, batch: pa.RecordBatch) -> list[int]:
    """Leave a file at the path, then hang."""
    if _hits(batch, 20):
        Path(path).touch()
        sleep_for_ever()
    return numbers_of(batch)


def sleep_for_ever() -> None:
    time.sleep(3600)


def wait_for(path: str) -> None:
    """Until there is a file at the path."""
    while not os.path.exists(path):
        time.sleep(0.001)


def waits_from(number: int, path: str, batch: pa.RecordBatch) -> list[int]:
    """Give what holds this number or larger ones only when there is a file at the path."""
    if max(numbers_of(batch)) >= number:
        wait_for(path)
    return numbers_of(batch)


def slow(batch: pa.RecordBatch) -> list[int]:
    time.sleep(0.02)
    return numbers_of(batch)


def asks_for_too_much(batch: pa.RecordBatch) -> np.ndarray:
    return np.ones(1 << 46, np.uint8)
