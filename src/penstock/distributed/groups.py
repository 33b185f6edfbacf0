"""The process group of a run: opened once, closed for certain. And how its ranks exchange arrays."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from penstock.config.errors import ConfigError
from penstock.runtime.world import Array, Collectives, OneProcess, World

TIMEOUT_SECONDS = 1800.0
"""How long ranks wait for each other before they give up."""


class TorchCollectives:
    """What ranks can do together; every rank must call, in the same order."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._num_ranks = dist.get_world_size()

    def sum(self, array: Array) -> Array:
        total = torch.from_numpy(np.array(array, copy=True)).to(self._device)
        dist.all_reduce(total)
        result: Array = total.cpu().numpy()
        return result

    def gather(self, array: Array) -> list[Array]:
        """Every rank's array, in rank order, the same on all; only lengths (the first axis) may differ."""
        own = self._bytes(array)
        sizes = [torch.zeros(1, dtype=torch.int64, device=self._device) for _ in range(self._num_ranks)]
        dist.all_gather(sizes, torch.tensor([own.numel()], device=self._device))
        sizes_bytes = [int(size) for size in sizes]
        padded = torch.zeros(max(sizes_bytes), dtype=torch.uint8, device=self._device)
        padded[: own.numel()] = own
        received = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(received, padded)
        return [_array(part[:size], array) for part, size in zip(received, sizes_bytes, strict=True)]

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        """Send `parts[r]` to rank r; receive one part from each rank, in rank order."""
        sent = [self._bytes(part) for part in parts]
        sent_sizes = torch.tensor([part.numel() for part in sent], device=self._device)
        sizes = torch.empty_like(sent_sizes)
        dist.all_to_all_single(sizes, sent_sizes)
        sizes_bytes = sizes.tolist()
        received = torch.empty(sum(sizes_bytes), dtype=torch.uint8, device=self._device)
        dist.all_to_all_single(received, torch.cat(sent), sizes_bytes, sent_sizes.tolist())
        return [_array(part, parts[0]) for part in torch.split(received, sizes_bytes)]

    def barrier(self) -> None:
        dist.barrier(device_ids=[self._device.index] if self._device.type == "cuda" else None)

    def _bytes(self, array: Array) -> torch.Tensor:
        content = np.frombuffer(bytearray(array.tobytes()), dtype=np.uint8)
        return torch.from_numpy(content).to(self._device)


def _array(content: torch.Tensor, like: Array) -> Array:
    """An array of the same dtype and row shape as `like`, of its own length."""
    values = np.frombuffer(bytearray(content.cpu().numpy().tobytes()), dtype=like.dtype)
    if like.ndim == 0:
        return values.reshape(())
    return values.reshape(len(values) // max(1, math.prod(like.shape[1:])), *like.shape[1:])


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
    collectives = OneProcess() if world.num_ranks == 1 else None
    if dist.is_initialized():
        if dist.get_world_size() != world.num_ranks:
            raise ConfigError(
                f"this run has {world.num_ranks} ranks, but a group of {dist.get_world_size()} is open already"
            )
        yield collectives or TorchCollectives(compute_device(world))
        return
    # torch puts the rank in front of every traceback, for good; the hook from before comes back.
    excepthook = sys.excepthook
    timeout, device = timedelta(seconds=timeout_seconds), compute_device(world)
    if collectives is not None:
        dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1, timeout=timeout)
    else:
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
    try:
        yield collectives or TorchCollectives(device)
    finally:
        dist.destroy_process_group()
        sys.excepthook = excepthook
