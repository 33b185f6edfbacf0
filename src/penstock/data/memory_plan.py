"""Who gets how many bytes of the limit, decided before anything is allocated.

What the process takes by being there and what the model needs come first, since neither can be made smaller;
the stages of the data path share the rest.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from penstock.config.sizes import MIB, format_size
from penstock.data.window import window_bytes
from penstock.readers.files import is_uri
from penstock.readers.scan import ScannedFiles
from penstock.readers.storage import ALL_BLOCKS_BYTES
from penstock.readers.stream import ROW_FIELD
from penstock.runtime.budget import MemoryBudget, Share

PREFETCH_CAP_BYTES = 64 * MIB
EVALUATION = "evaluation "
"""In front of the shares of a run's evaluation data."""
BLOCKS_AHEAD = 2
"""Blocks that reading ahead holds: one that waits, and one that is in use."""
BLOCKS_AHEAD_OF_A_SHUFFLE = 4
CUT_CAP_BYTES = 64 * MIB
_SETTINGS = {
    "shuffle": "data_config.shuffle_buffer",
    "cut": "data_config.max_batch_rows",
    "prefetch": "data_config.prefetch",
    "store windows": "memory.limit",
    "reader": "memory.limit",
    "read ahead": "memory.limit",
}
"""The key of the run file that decides about each share."""
WORKER_BYTES = 112 * MIB
"""A worker process, without pages that it shares: Python, Arrow, compiled kernels. Measured: 79 to 94 MiB."""
WORK_PER_BATCH = 2
"""What a function allocates while it works on a batch, in batches."""
FLIGHT_PER_WORKER = 4
"""Two batches for each worker, one in work and one that waits for its turn, and their results, in batches."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageShares:
    """The shares of the stages of one stream; a stage without one is left out."""

    reader: Share
    prefetch: Share | None = None
    read_ahead: Share | None = None
    shuffle: Share | None = None
    cut: Share | None = None
    workers: Share | None = None

    @classmethod
    def of(cls, budget: MemoryBudget, stream: str = "") -> Self:
        """Those that were planned for a stream: "", or EVALUATION."""
        names = [stage.name for stage in fields(cls)]
        shares: dict[str, Any] = {
            name: budget.shares.get(f"{stream}{name.replace('_', ' ')}") for name in names
        }
        return cls(**shares)


def shuffle_bytes_of(scanned: ScannedFiles, num_rows: int) -> int:
    return window_bytes(scanned.columns.append(ROW_FIELD), num_rows, scanned.row_bytes) if num_rows else 0


def data_path_bytes(
    streams: Mapping[str, ScannedFiles],
    shuffle_bytes: int,
    prefetch_bytes: int | None = None,
    by_cost: bool = False,
) -> int:
    """What the stages that carry rows can use, so that workers take nothing of it."""
    prefetch = PREFETCH_CAP_BYTES if prefetch_bytes is None else prefetch_bytes
    per_stream = [
        scanned.ample_bytes + BLOCKS_AHEAD_OF_A_SHUFFLE * scanned.block_bytes + prefetch
        for scanned in streams.values()
    ]
    fixed = shuffle_bytes + CUT_CAP_BYTES * by_cost + ALL_BLOCKS_BYTES
    return fixed + sum(per_stream) * 8 // 7


def worker_bytes(batch_bytes: int) -> int:
    """Of one worker more: its process, what it allocates for a batch, and what is in flight for it."""
    return WORKER_BYTES + (WORK_PER_BATCH + FLIGHT_PER_WORKER) * batch_bytes


def share_workers(
    budget: MemoryBudget, wanted: int, num_cores: int, bytes_left: int, batch_bytes: int
) -> int:
    """Shares of the processes that parse; gives how many there are.

    `bytes_left` is what no other stage can use. Where it or the cores are too few, the log says so.
    """
    fitting = max(0, bytes_left) // worker_bytes(batch_bytes)
    count = min(wanted, num_cores, fitting)
    if count < wanted:
        reason = (
            f"there are {num_cores} cores"
            if num_cores <= fitting
            else f"{fitting} fit into the {format_size(max(0, bytes_left))} that are left, each with "
            f"{format_size(worker_bytes(batch_bytes))}; raise memory.limit for more"
        )
        logger.warning(
            "data_config.num_workers: going on with %d; %d workers are wanted, but %s", count, wanted, reason
        )
    if count:
        process_bytes = count * (WORKER_BYTES + WORK_PER_BATCH * batch_bytes)
        budget.share("worker processes", process_bytes, setting="data_config.num_workers")
        flight_bytes = max(1, count * FLIGHT_PER_WORKER * batch_bytes)
        budget.share("workers", flight_bytes, setting="data_config.num_workers")
    return count


def share_data_path(
    budget: MemoryBudget,
    streams: Mapping[str, ScannedFiles],
    *,
    shuffle_bytes: int = 0,
    prefetch_bytes: int | None = None,
    by_cost: bool = False,
    reader_cap_bytes: int | None = None,
    is_ahead: bool = True,
) -> None:
    """Shares of the stages that carry rows.

    `streams` are the data sets that are read at once, by the word in front of the names of their shares: "" and, for
    a run that evaluates on the way, EVALUATION. A reader gets what it can use, at most `reader_cap_bytes`, and never
    less than it needs. With `is_ahead`, two blocks or more are read ahead where there is room for them, and an eighth
    of what is left stays free. `prefetch_bytes` None: chosen; 0: nothing is prefetched.
    """

    def share(name: str, num_bytes: int) -> int:
        setting = _SETTINGS[name.removeprefix(EVALUATION)]
        return budget.share(name, num_bytes, setting=setting).limit_bytes

    if shuffle_bytes:
        share("shuffle", shuffle_bytes)
    if any(is_uri(file.path) for scanned in streams.values() for file in scanned.files):
        share("store windows", ALL_BLOCKS_BYTES)
    rest = max(0, budget.unshared_bytes) // len(streams)
    for stream, scanned in streams.items():
        left = rest * 7 // 8 if is_ahead else rest
        if by_cost and not stream:
            left -= share("cut", max(1, min(CUT_CAP_BYTES, left // 4)))
        chosen = max(1, min(PREFETCH_CAP_BYTES, left // 4))
        prefetch = chosen if prefetch_bytes is None else prefetch_bytes
        if prefetch:
            share(f"{stream}prefetch", prefetch)
        ample = min(scanned.ample_bytes, reader_cap_bytes or scanned.ample_bytes)
        reader = share(f"{stream}reader", max(scanned.min_bytes, min(ample, left - prefetch)))
        # While a window is drawn from, the next one is being read.
        max_ahead = BLOCKS_AHEAD_OF_A_SHUFFLE if shuffle_bytes and not stream else BLOCKS_AHEAD
        num_ahead = min(max_ahead, (left - prefetch - reader) // scanned.block_bytes)
        if is_ahead and num_ahead >= BLOCKS_AHEAD:
            share(f"{stream}read ahead", num_ahead * scanned.block_bytes)
