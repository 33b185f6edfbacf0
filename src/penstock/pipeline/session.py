"""What every command that computes opens first: threads, the memory monitor, the process group."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from penstock.config.errors import ConfigError
from penstock.distributed.groups import process_group
from penstock.pipeline.memory_plan import limit_of
from penstock.pipeline.run_config import RunConfig
from penstock.runtime.cores import compute_threads
from penstock.runtime.memory import MemoryMonitor
from penstock.runtime.world import World


@contextmanager
def computing(run: RunConfig) -> Iterator[MemoryMonitor]:
    """Compute within a run's memory limit; gives the monitor that watches it."""
    world = World.from_environment()
    if world.num_ranks > 1:
        raise ConfigError("more than one rank is not available yet; start one process, without torchrun")
    torch.set_num_threads(compute_threads())
    with MemoryMonitor(limit_of(run.memory)) as monitor, process_group(world):
        yield monitor
