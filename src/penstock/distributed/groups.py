"""The process group of a run: opened once, closed for certain."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from penstock.config.errors import ConfigError
from penstock.distributed.collectives import TorchCollectives
from penstock.runtime.collectives import Collectives, OneProcess
from penstock.runtime.world import World

TIMEOUT_SECONDS = 1800.0
"""How long ranks wait for each other before they give up."""


def compute_device(world: World) -> torch.device:
    """The device this rank computes on: its own GPU, or the CPU where there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if world.local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"LOCAL_RANK is {world.local_rank} but this machine has {torch.cuda.device_count()} GPUs; "
            "start at most one rank per GPU (torchrun --nproc_per_node)"
        )
    return torch.device("cuda", world.local_rank)


@contextmanager
def process_group(world: World, timeout_seconds: float = TIMEOUT_SECONDS) -> Iterator[Collectives]:
    """Join the other ranks for the length of a `with` block; gives the way to exchange arrays with them.

    A group that exists already (a run inside a run, a notebook) is used and left as it is.
    """
    if dist.is_initialized():
        _require_same_size(world)
        yield _collectives(world)
        return
    # torch puts the rank in front of every traceback, for good; the hook from before comes back.
    excepthook = sys.excepthook
    _open(world, timedelta(seconds=timeout_seconds))
    try:
        yield _collectives(world)
    finally:
        dist.destroy_process_group()
        sys.excepthook = excepthook


def _open(world: World, timeout: timedelta) -> None:
    if world.num_ranks == 1:
        dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1, timeout=timeout)
        return
    device = compute_device(world)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, rank=world.rank, world_size=world.num_ranks, timeout=timeout)
    except (ValueError, dist.DistError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"rank {world.rank} cannot join the others: {reason}; start the ranks with torchrun"
        ) from None


def _require_same_size(world: World) -> None:
    if dist.get_world_size() != world.num_ranks:
        raise ConfigError(
            f"this run has {world.num_ranks} ranks, but a group of {dist.get_world_size()} is open already"
        )


def _collectives(world: World) -> Collectives:
    return OneProcess() if world.num_ranks == 1 else TorchCollectives(compute_device(world))
