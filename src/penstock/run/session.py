"""What every command that computes opens first: threads, the memory monitor, the process group."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from penstock.config.errors import BudgetExceeded, ConfigError
from penstock.config.sizes import format_size
from penstock.distributed.groups import process_group
from penstock.run.run_config import RunConfig
from penstock.runtime.memory import MemoryMonitor, MemoryReport, limit_of, memory_of_machine
from penstock.runtime.sections import OnExceed
from penstock.runtime.world import World, compute_threads
from penstock.training.precision import tensor_float_32

SAMPLE_SECONDS = 0.2
logger = logging.getLogger(__name__)


@contextmanager
def computing(run: RunConfig) -> Iterator[MemoryMonitor]:
    """Compute within a run's memory limit; gives the monitor that watches it."""
    world = World.from_environment()
    if world.num_ranks > 1:
        raise ConfigError("more than one rank is not available yet; start one process, without torchrun")
    warn_of_limit(limit_of(run.memory))
    torch.set_num_threads(compute_threads())
    interval_seconds = SAMPLE_SECONDS if run.memory.monitor else None
    with (
        MemoryMonitor(limit_of(run.memory), interval_seconds) as monitor,
        process_group(world),
        tensor_float_32(run.train_config),
    ):
        yield monitor


def warn_of_limit(limit_bytes: int) -> None:
    """A limit above what there is protects nobody."""
    if limit_bytes > memory_of_machine():
        logger.warning(
            "memory.limit is %s, but there are only %s here",
            format_size(limit_bytes),
            format_size(memory_of_machine()),
        )


def exceeds_limit(run: RunConfig, monitor: MemoryMonitor) -> bool:
    """Whether more than the limit was measured, and the run file wants that to stop a command."""
    return run.memory.on_exceed is OnExceed.stop and monitor.report.exceeded


def limit_exceeded(report: MemoryReport, what_now: str) -> BudgetExceeded:
    """The error of a command that took too much; `what_now` says what became of its work."""
    return BudgetExceeded(
        f"the process tree took {format_size(report.peak_bytes)} of {format_size(report.limit_bytes)} "
        f"(in stage {report.peak_stage}); {what_now}. Raise memory.limit, or lower data_config.batch_size"
    )
