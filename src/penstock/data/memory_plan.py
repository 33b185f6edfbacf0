"""Who gets how many bytes of the limit, decided before anything is allocated.

What the process and the model need has its shares already (run.training), since neither can be made smaller; the stages
of the data path share the rest.
"""

import logging
from collections.abc import Mapping

from penstock.config.sizes import MIB, format_size
from penstock.data.window import window_bytes
from penstock.readers.files import is_uri
from penstock.readers.scan import ScannedFiles
from penstock.readers.storage import ALL_BLOCKS_BYTES
from penstock.readers.stream import ROW_FIELD
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.world import available_cores

PREFETCH_CAP_BYTES = 64 * MIB
EVALUATION = "evaluation "
"""In front of the shares of a run's evaluation data."""
BLOCKS_AHEAD = 2
"""Blocks that reading ahead holds: one that waits, and one that is in use."""
BLOCKS_AHEAD_OF_A_SHUFFLE = 4
CUT_CAP_BYTES = 64 * MIB
WORKER_BYTES = 112 * MIB
"""A worker process, without pages that it shares: Python, Arrow, compiled kernels. Measured: 79 to 94 MiB."""
WORK_PER_BATCH = 2
"""What a function allocates while it works on a batch, in batches."""
FLIGHT_PER_WORKER = 4
"""Two batches for each worker, one in work and one that waits for its turn, and their results, in batches."""

logger = logging.getLogger(__name__)


def share_data_path(
    budget: MemoryBudget,
    streams: Mapping[str, ScannedFiles],
    *,
    shuffle_rows: int = 0,
    prefetch_bytes: int | None = None,
    by_cost: bool = False,
    reader_cap_bytes: int | None = None,
    is_ahead: bool = True,
    num_workers: int = 0,
    batch_rows: int = 0,
) -> int:
    """Shares of the stages that carry rows, and of the processes that parse; gives how many of these there are.

    `streams` are the data sets that are read at once, by their stage prefix: "" and, for
    a run that evaluates on the way, EVALUATION. A reader gets what it can use, at most `reader_cap_bytes`, and never
    less than it needs. With `is_ahead`, two blocks or more are read ahead where there is memory for them, and an eighth
    of what is left stays free. `prefetch_bytes` None: chosen; 0: nothing is prefetched. `num_workers` are wanted, for
    batches of `batch_rows` rows.
    """
    shuffle_bytes, first = 0, streams[""]
    is_remote = any(is_uri(file.path) for scanned in streams.values() for file in scanned.files)
    store_bytes = ALL_BLOCKS_BYTES if is_remote else 0
    if shuffle_rows:
        shuffle_bytes = window_bytes(first.columns.append(ROW_FIELD), shuffle_rows, first.row_bytes)
    if num_workers:
        # They get what no stage that carries rows can use.
        prefetch = PREFETCH_CAP_BYTES if prefetch_bytes is None else prefetch_bytes
        ahead = sum(
            sizes.ample_bytes + BLOCKS_AHEAD_OF_A_SHUFFLE * sizes.block_bytes + prefetch
            for sizes in (scanned.sizes for scanned in streams.values())
        )
        usable_bytes = shuffle_bytes + CUT_CAP_BYTES * by_cost * len(streams) + store_bytes + ahead * 8 // 7
        bytes_left = budget.unshared_bytes - usable_bytes
        num_workers = _share_workers(budget, num_workers, bytes_left, batch_rows * first.row_bytes)
    if shuffle_bytes:
        budget.share("shuffle", shuffle_bytes, setting="data_config.shuffle_buffer")
    if store_bytes:
        budget.share("store windows", store_bytes)
    rest = max(0, budget.unshared_bytes) // len(streams)
    for stage_prefix, scanned in streams.items():
        sizes = scanned.sizes
        left = rest * 7 // 8 if is_ahead else rest
        if by_cost:
            cut = max(1, min(CUT_CAP_BYTES, left // 4))
            budget.share(f"{stage_prefix}cut", cut, setting="data_config.max_batch_rows")
            left -= cut
        chosen = max(1, min(PREFETCH_CAP_BYTES, left // 4))
        prefetch = chosen if prefetch_bytes is None else prefetch_bytes
        if prefetch:
            budget.share(f"{stage_prefix}prefetch", prefetch, setting="data_config.prefetch")
        ample = min(sizes.ample_bytes, reader_cap_bytes or sizes.ample_bytes)
        reader = max(sizes.min_bytes, min(ample, left - prefetch))
        budget.share(f"{stage_prefix}reader", reader)
        # While a window is drawn from, the next one is being read.
        max_ahead = BLOCKS_AHEAD_OF_A_SHUFFLE if shuffle_bytes and not stage_prefix else BLOCKS_AHEAD
        num_ahead = min(max_ahead, (left - prefetch - reader) // sizes.block_bytes)
        if is_ahead and num_ahead >= BLOCKS_AHEAD:
            budget.share(f"{stage_prefix}read ahead", num_ahead * sizes.block_bytes)
    return num_workers


def worker_bytes(batch_bytes: int) -> int:
    """Of one worker more: its process, what it allocates for a batch, and what is in flight for it."""
    return WORKER_BYTES + (WORK_PER_BATCH + FLIGHT_PER_WORKER) * batch_bytes


def _share_workers(budget: MemoryBudget, wanted: int, bytes_left: int, batch_bytes: int) -> int:
    """Shares of the processes that parse; gives how many there are.

    `bytes_left` is what no other stage can use. Where it or the cores are too few, the log says so.
    """
    fitting, num_cores = max(0, bytes_left) // worker_bytes(batch_bytes), available_cores()
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
