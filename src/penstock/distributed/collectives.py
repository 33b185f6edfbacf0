"""`penstock.runtime.collectives.Collectives` over the open process group: NumPy in and out, torch in between.

Arrays travel as bytes, so that every dtype does; only `sum` needs numbers that the backend can add.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist

from penstock.runtime.collectives import Array


class TorchCollectives:
    """What ranks can do together; every rank must call, in the same order."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._num_ranks = dist.get_world_size()

    def sum(self, array: Array) -> Array:
        """The element-wise sum over ranks, the same on all."""
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
        """Wait until every rank is here."""
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
