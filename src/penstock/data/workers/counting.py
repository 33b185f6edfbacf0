"""How many workers there should be, and what they take."""

import logging
from dataclasses import dataclass

from penstock.config.sizes import MIB, format_size

TEMPLATE_BYTES = 96 * MIB
"""The process that workers are copies of: Python, Arrow, compiled kernels. Measured; see docs/workers.md."""
WORKER_BYTES = 16 * MIB
"""What a worker does not share with the template: memory that it wrote to, and what allocators keep. Measured."""
BATCHES_IN_FLIGHT = 3
"""For each worker: the batch in work, the next one, and one that is done and waits for its turn."""
RESULT_PER_BATCH = 2
"""Room for a batch and its result, in batches."""
WORK_PER_BATCH = 2
"""What a function allocates while it works on a batch, in batches."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """Workers of a run and their memory."""

    count: int
    measured: bool
    """Start them only if measuring the first batches says that they help."""

    arena_bytes: int
    """The share that `in_workers` needs."""

    process_bytes: int
    """What the processes take beside it."""

    reason: str | None = None
    """Why there are fewer than wanted."""


def worker_bytes(batch_bytes: int) -> int:
    """What one worker more takes: its process, and its part of the shared memory."""
    return WORKER_BYTES + WORK_PER_BATCH * batch_bytes + arena_bytes(1, batch_bytes)


def arena_bytes(num_workers: int, batch_bytes: int) -> int:
    """Shared memory with which no worker has to wait for room."""
    num_bytes = num_workers * BATCHES_IN_FLIGHT * RESULT_PER_BATCH * max(batch_bytes, MIB)
    return -(-num_bytes // MIB) * MIB


def workers_that_fit(
    wanted: int, cores: int, bytes_left: int, bytes_per_worker: int
) -> tuple[int, str | None]:
    """As many workers as are wanted, if there are cores and memory for them; else fewer, and why.

    >>> workers_that_fit(4, 2, 1000, 100)
    (2, '4 workers are wanted, but there are 2 cores')
    """
    fitting = max(0, bytes_left // bytes_per_worker)
    if wanted <= min(cores, fitting):
        return wanted, None
    if cores <= fitting:
        return cores, f"{wanted} workers are wanted, but there are {cores} cores"
    return fitting, (
        f"{wanted} workers are wanted, but {fitting} fit into the {format_size(max(0, bytes_left))} that are left, "
        f"each with {format_size(bytes_per_worker)}; raise memory.limit for more"
    )


def plan_workers(wanted: int | None, cores: int, bytes_left: int, batch_bytes: int) -> WorkerPlan:
    """The workers of a run; `wanted` is what the run file says, None for as many as measuring will ask for.

    `batch_bytes` are those of a record batch. One core is left to the process that reads and trains when the number
    is not given. Fewer workers than the run file wants are told in the log.
    """
    asked = cores - 1 if wanted is None else wanted
    bytes_left -= TEMPLATE_BYTES
    count, reason = workers_that_fit(asked, cores, bytes_left, worker_bytes(batch_bytes))
    if wanted is not None and reason is not None:
        _logger.warning("data_config.num_workers: going on with %d; %s", count, reason)
    if not count:
        return WorkerPlan(0, wanted is None, 0, 0, reason)
    process_bytes = TEMPLATE_BYTES + count * (WORKER_BYTES + WORK_PER_BATCH * batch_bytes)
    return WorkerPlan(count, wanted is None, arena_bytes(count, batch_bytes), process_bytes, reason)
