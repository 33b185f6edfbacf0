"""A Dataset as a torch IterableDataset, and NumPy arrays as tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from penstock.config.errors import CheckpointError
from penstock.data.arguments import whole_argument
from penstock.data.arrow_numpy import Ragged
from penstock.data.chain import Chain
from penstock.data.dataset import Dataset
from penstock.data.passes import Form
from penstock.readers.order import Shard
from penstock.runtime.world import State

_NOT_ASKED = -1


class TorchDataset(IterableDataset[dict[str, Any]]):
    """Gives dicts of tensors: alone, or in `DataLoader(dataset, batch_size=None, num_workers=...)`.

    Without `.batch` it gives rows, for a DataLoader that makes the batches. Each worker of a DataLoader reads its own
    part of the rows, so that every row comes once; a worker that goes over the rows again begins the next epoch.
    Workers that are restarted for each epoch cannot know it: call `set_epoch`, or keep them (`persistent_workers`).
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._dataset: Dataset | None = None
        self._worker: tuple[int, int] | None = None
        """Whose part of the rows `_dataset` is: (worker, number of workers); None: all rows."""
        self._is_loaded = False
        self._begun_epoch = _NOT_ASKED
        self._asked_epoch = torch.tensor(_NOT_ASKED)
        self._asked_epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"Torch{Dataset(self._chain)!r}"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        dataset = self._here()
        asked = int(self._asked_epoch)
        if asked != self._begun_epoch:
            dataset.set_epoch(asked)
            self._begun_epoch = asked
        return iter(dataset)

    def state_dict(self) -> State:
        """The position after the last element; in a worker, that of its part of the rows."""
        return self._here().state_dict()

    def load_state_dict(self, state: State | Sequence[State]) -> None:
        """Let the next loop go on from a position. Workers load their own: see torchdata's StatefulDataLoader."""
        self._here().load_state_dict(state)
        self._is_loaded = True

    def set_epoch(self, epoch: int) -> None:
        """Let the next loop begin with this epoch, in workers that are running too."""
        epoch = whole_argument("set_epoch", epoch, "epochs are counted from 0", at_least=0)
        self._asked_epoch.fill_(epoch)

    def __getstate__(self) -> dict[str, Any]:
        """For workers that are not forked: the chain, and what was asked for; they look at the data themselves."""
        return {**self.__dict__, "_dataset": None}

    def _here(self) -> Dataset:
        """All rows; in a worker of a DataLoader, its part of them."""
        info = get_worker_info()
        worker = None if info is None else (info.id, info.num_workers)
        if self._dataset is None or worker != self._worker:
            if self._is_loaded:
                raise CheckpointError(
                    "a position was loaded before the workers of the DataLoader began, which each need their own; use "
                    "num_workers=0, or a StatefulDataLoader (torchdata)"
                )
            chain = self._chain if worker is None else part_of(self._chain, *worker)
            self._dataset = Dataset(chain, Form.TORCH)
            self._worker = worker
        return self._dataset


def part_of(chain: Chain, index: int, count: int) -> Chain:
    """What one of several workers reads: its shard of the rows, in its part of the memory."""
    whole, part = chain.shard or Shard(), Shard(index, count)

    def share(number: int | None) -> int | None:
        return None if number is None else part.bounds(number)[1] - part.bounds(number)[0]

    return replace(
        chain,
        shard=Shard(whole.index * count + index, whole.count * count),
        take_rows=share(chain.take_rows),
        take_batches=share(chain.take_batches),
        take_in_all=share(chain.take_in_all),
        memory_bytes=None if chain.memory_bytes is None else chain.memory_bytes // count,
    )


def tensors_of(columns: dict[str, Any]) -> dict[str, Any]:
    """A batch or a row as tensors, in memory of their own: what a model writes into never reaches the data.

    Times become integers, in their own unit; texts have no tensors and stay Python texts, in a list; lists of different
    lengths become one nested tensor of jagged layout.
    """
    return {name: tensor_of(value) for name, value in columns.items()}


def tensor_of(value: Any) -> Any:
    if isinstance(value, Ragged):
        values = tensor_of(value.values)
        if not isinstance(values, torch.Tensor) or values.is_nested:
            return value.tolist()
        return torch.nested.nested_tensor_from_jagged(values, torch.from_numpy(value.offsets.copy()))
    if isinstance(value, str | bytes) or value is None:
        return value
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return array.tolist()
    if array.dtype.kind in "Mm":
        array = array.view(np.int64) if array.ndim else array.astype(np.int64)
    return torch.from_numpy(np.array(array))
