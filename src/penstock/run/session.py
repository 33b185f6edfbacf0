"""What every command that computes opens first: threads, the memory monitor, the process group."""

import ctypes
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import torch

from penstock.config.errors import BudgetExceeded, ConfigError
from penstock.config.sizes import format_size
from penstock.distributed.groups import process_group
from penstock.run.run_config import RunConfig
from penstock.runtime.memory import MemoryMonitor, limit_of, memory_of_machine
from penstock.runtime.sections import OnExceed
from penstock.runtime.world import Collectives, World, compute_threads

SAMPLE_SECONDS = 0.2
M_ARENA_MAX, NUM_ARENAS = -8, 2
"""A parameter of glibc's malloc, and its value: threads that each have their own heap leave gaps in each."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    world: World
    collectives: Collectives
    monitor: MemoryMonitor
    peers: Collectives | None = None
    """The collectives, where there are several ranks."""

    def settled_bytes(self) -> int:
        """What the process tree takes, after what allocators keep for later has been given back."""
        give_back()
        return self.monitor.sample()

    def limit_exceeded(self, what_now: str) -> BudgetExceeded:
        """The error of a command that took too much; `what_now` says what became of its work."""
        report = self.monitor.report
        key = "eval_batch_size" if report.peak_stage in ("evaluate", "predict") else "batch_size"
        return BudgetExceeded(
            f"the process tree took {format_size(report.peak_bytes)} of {format_size(report.limit_bytes)} "
            f"(in stage {report.peak_stage}); {what_now}. Raise memory.limit, or lower data_config.{key}"
        )


def give_back() -> None:
    """Return what allocators keep for later; for malloc that is `malloc_trim`."""
    pa.default_memory_pool().release_unused()


@contextmanager
def one_allocator() -> Iterator[None]:
    """Arrow allocates as torch does, by the C library: what one of them frees the other takes, and all of it goes back
    with `release_unused`. A pool of Arrow's own keeps tens of MiB for each thread, which nobody counts.
    """
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, NUM_ARENAS)
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


@contextmanager
def computing(run: RunConfig) -> Iterator[Session]:
    """Compute within a run's memory limit, in the world that the environment describes.

    Inside, a GPU computes float32 products in TF32 where the run file lets it; CPUs have no such thing.
    """
    world, train = World.from_environment(), run.train_config
    if world.num_ranks > 1:
        raise ConfigError("more than one rank is not available yet; start one process, without torchrun")
    limit_bytes, machine_bytes = limit_of(run.memory), memory_of_machine()
    if limit_bytes > machine_bytes:
        limit, machine = format_size(limit_bytes), format_size(machine_bytes)
        logger.warning("memory.limit is %s, but there are only %s here", limit, machine)
    torch.set_num_threads(compute_threads())
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    tf32_before = convolutions.allow_tf32, products.allow_tf32
    if train is not None:
        convolutions.allow_tf32, products.allow_tf32 = train.cudnn_allow_tf32, train.cuda_matmul_allow_tf32
    try:
        interval_seconds = SAMPLE_SECONDS if run.memory.monitor else None
        stops = run.memory.on_exceed is OnExceed.stop
        with (
            one_allocator(),
            MemoryMonitor(limit_bytes, interval_seconds, stops=stops, relieve=give_back) as monitor,
            process_group(world) as collectives,
        ):
            peers = collectives if world.num_ranks > 1 else None
            yield Session(world, collectives, monitor, peers)
    finally:
        convolutions.allow_tf32, products.allow_tf32 = tf32_before
