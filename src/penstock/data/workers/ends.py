"""How a worker ended, in words that say what happened, where, and what to do."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.config.sizes import format_size
from penstock.readers.origin import ROW_COLUMN, locate
from penstock.runtime.worker_process import WorkerError, WorkerStack, how_ended, innermost


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What is known of a worker when it is time to tell."""

    number: int
    pid: int
    rows: str
    """The rows that it had."""

    memory_bytes: int | None = None
    """When its memory was last looked at."""

    stack: str = ""

    def __str__(self) -> str:
        return f"worker {self.number} (pid {self.pid})"

    @property
    def cause(self) -> WorkerStack | None:
        """Its stack, to chain an error to."""
        return WorkerStack(self.stack) if self.stack else None


def killed(worker: WorkerFacts, exit_code: int | None, oom_kills: int) -> WorkerError:
    """The error for a worker that is no more. `oom_kills`: how often memory was the reason meanwhile."""
    memory = (
        ""
        if worker.memory_bytes is None
        else f"; its memory was last seen at {format_size(worker.memory_bytes)}"
    )
    text = f"{worker} {how_ended(exit_code)} while it had {worker.rows}{memory}"
    if oom_kills:
        text += f"; for want of memory the kernel has killed {oom_kills} in this container since the start"
    return WorkerError(f"{text}. {_advice(exit_code, oom_kills)}")


def template_killed(exit_code: int | None, oom_kills: int) -> WorkerError:
    """The error for a template that is no more."""
    text = f"the process that worker processes are made from {how_ended(exit_code)}"
    return WorkerError(f"{text}. {_advice(exit_code, oom_kills)}")


def hangs(worker: WorkerFacts, seconds: float, median_seconds: float | None, status: str) -> WorkerError:
    """The error for a worker that does not come to an end with a batch."""
    usual = "" if median_seconds is None else f"; half of the batches take less than {median_seconds:.3g} s"
    where = f"; it is in {place}" if (place := innermost(worker.stack)) else f"; its state is '{status}'"
    return WorkerError(
        f"{worker} has been at {worker.rows} for {seconds:.0f} s{usual}{where}. Look at what it waits for; "
        "data_config.num_workers: 0 runs the same in the training process"
    )


def rows_of(batch: pa.RecordBatch, file_paths: Sequence[str]) -> str:
    """Which rows a record batch holds, for a message; rows are counted from 0."""
    if ROW_COLUMN not in batch.schema.names or not batch.num_rows:
        return f"a batch of {batch.num_rows} rows"
    row_ids = batch.column(ROW_COLUMN).to_numpy()
    file_index, row = locate(int(row_ids[0]))
    file = file_paths[file_index] if file_index < len(file_paths) else f"file {file_index}"
    if bool((np.diff(row_ids) == 1).all()):
        return f"rows {row} to {row + batch.num_rows - 1} of {file}"
    return f"{batch.num_rows} scattered rows, the first of them row {row} of {file}"


def _advice(exit_code: int | None, oom_kills: int) -> str:
    if oom_kills or exit_code in (None, -signal.SIGKILL):
        return (
            "Most often memory has run out: lower data_config.num_workers or data_config.batch_size, "
            "or raise memory.limit"
        )
    return "data_config.num_workers: 0 runs the same in the training process"
