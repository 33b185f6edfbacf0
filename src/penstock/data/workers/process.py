"""What one worker process does: a batch, a result, and the next."""

import faulthandler
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.data.workers.channel import Channel
from penstock.data.workers.messages import Done, Failed, Reply, Task, TooLarge
from penstock.data.workers.transport import Borrowed, ResultTooLarge, Span, read_batch, write_result

STACK_SIGNAL = signal.SIGUSR1
"""Asks a worker to write its stack, whatever it is doing."""
MOST_ERROR_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Work:
    """What workers do, loaded once for all of them: `warm` is called before they are made."""

    function: Callable[[pa.RecordBatch], Any]
    warm: Callable[[], None] | None = None


def serve(work: Work, connection: Channel, arena: memoryview, stack_file: int) -> None:
    """Answer every task until the parent closes the connection, or is no more."""
    os.ftruncate(stack_file, 0)
    faulthandler.enable(stack_file)
    faulthandler.register(STACK_SIGNAL, stack_file, all_threads=True)
    pa.set_cpu_count(1)
    try:
        while True:
            connection.send(_answer(work.function, connection.recv(), arena))
    except (EOFError, OSError):
        return


def _answer(function: Callable[[pa.RecordBatch], Any], task: Task, arena: memoryview) -> Reply:
    try:
        return _apply(function, task, arena)
    except ResultTooLarge as error:
        return TooLarge(task.number, error.needed_bytes)
    except Exception as error:  # told to the parent, which raises it
        return _failed(task.number, error)


def _apply(function: Callable[[pa.RecordBatch], Any], task: Task, arena: memoryview) -> Done:
    region = arena[task.region.offset : task.region.offset + task.region.num_bytes]
    with Borrowed(region) as borrowed:
        started_at = time.perf_counter()
        result = function(read_batch(borrowed.part(Span(0, task.batch_bytes))))
        spans = write_result(result, region, task.batch_bytes)
        seconds = time.perf_counter() - started_at
        del result
    return Done(task.number, spans, seconds)


def _failed(number: int, error: Exception) -> Failed:
    summary = f"{type(error).__name__}: {error}"[:MOST_ERROR_BYTES]
    text = "".join(traceback.format_exception(error))[-MOST_ERROR_BYTES:]
    return Failed(number, _pickled(error), summary, text)


def _pickled(error: Exception) -> bytes | None:
    """The exception as bytes, if it survives the way there and back."""
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # noqa: S301
    except Exception:  # any class may refuse in its own way
        return None
    return pickled if len(pickled) <= MOST_ERROR_BYTES else None
