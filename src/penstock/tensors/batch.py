"""Batch: everything a model takes in one step, as tensors, and Arrow columns that are carried beside them."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor
from torchrec.streamable import Pipelineable

from penstock.features.value_counts import ValueCounts
from penstock.readers.stream import describe_rows
from penstock.runtime.world import State

# torchrec asks torch a question that torch now answers with a warning about its name, once in every process.
logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class Position:
    """The row ids of a batch (readers.stream) in order: an interval if they are consecutive, else all."""

    first: int
    num_rows: int
    scattered: NDArray[np.int64] | None = None
    file_paths: tuple[str, ...] = ()
    """The files that row ids count, for messages; where they are not known, a file is told by its number."""

    @classmethod
    def of(cls, row_ids: NDArray[np.int64], file_paths: tuple[str, ...] = ()) -> Self:
        if not len(row_ids):
            return cls(0, 0, None, file_paths)
        first = int(row_ids[0])
        if int(row_ids[-1]) - first == len(row_ids) - 1 and bool((np.diff(row_ids) == 1).all()):
            return cls(first, len(row_ids), None, file_paths)
        return cls(first, len(row_ids), row_ids.copy(), file_paths)

    def __str__(self) -> str:
        return describe_rows(self.row_ids(), self.file_paths)

    def row_ids(self) -> NDArray[np.int64]:
        if self.scattered is not None:
            return self.scattered
        return np.arange(self.first, self.first + self.num_rows, dtype=np.int64)


class RecordBatchTensor:
    """A record batch, or None, held in one torch storage as an Arrow IPC stream (schema and all).

    torch moves the storage between processes through shared memory; `get` reads the columns in place. None
    stays None, and a record batch of zero rows stays one.
    """

    def __init__(self, record_batch: pa.RecordBatch | None = None) -> None:
        self.data: torch.Tensor | None = None
        if record_batch is not None:
            # Written twice: first to nowhere, to learn its size, then straight to the storage.
            counter = pa.MockOutputStream()
            _write(record_batch, counter)
            self.data = torch.empty(counter.size(), dtype=torch.uint8)
            _write(record_batch, pa.FixedSizeBufferWriter(_buffer(self.data)))

    def get(self) -> pa.RecordBatch | None:
        """The record batch. Its columns are views of the storage, and keep it alive."""
        if self.data is None:
            return None
        with pa.ipc.open_stream(_buffer(self.data)) as stream:
            return stream.read_next_batch()

    @property
    def nbytes(self) -> int:
        return 0 if self.data is None else self.data.nbytes


def _buffer(data: torch.Tensor) -> pa.Buffer:
    """Arrow's view of the storage. The array in between is what keeps the storage alive."""
    array: Any = data.numpy()
    return pa.py_buffer(array)


def _write(record_batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, record_batch.schema) as stream:
        stream.write_batch(record_batch)


BASE = "base"
"""The group of rows that the data holds; sampled negatives have groups of their own, with more rows."""


@dataclass
class Batch(Pipelineable):
    """Features by group of rows, labels, weights, and what is only carried along.

    torchrec's pipelines move it between devices by `to` and `record_stream`.
    """

    dense_features: dict[str, KeyedTensor] = field(default_factory=dict)
    sparse_features: dict[str, KeyedJaggedTensor] = field(default_factory=dict)
    weighted_sparse_features: dict[str, KeyedJaggedTensor] = field(default_factory=dict)
    """Ids with weights. The others never get any, so that torchrec's pipelines can look through."""

    sequence_mulval_lengths: dict[str, KeyedJaggedTensor] = field(default_factory=dict)
    """Of sequences whose steps hold several values: how many each step holds, and the steps of each row."""

    sequence_dense_features: dict[str, JaggedTensor] = field(default_factory=dict)
    labels: dict[str, torch.Tensor] = field(default_factory=dict)
    jagged_labels: dict[str, JaggedTensor] = field(default_factory=dict)
    reserves: RecordBatchTensor = field(default_factory=RecordBatchTensor)
    """Columns that go to the output unread."""

    tile_size: int = 0
    """Rows that one user row stands for at inference; 0: no tiling."""

    sample_weights: dict[str, torch.Tensor] = field(default_factory=dict)
    additional_infos: dict[str, torch.Tensor] = field(default_factory=dict)
    step_shares: dict[str, torch.Tensor] = field(default_factory=dict)
    """By the suffix of a task, on several ranks: what these rows weigh in it, beside the mean of all ranks."""

    dummy: bool = False
    """No rows of the data: only there so that this rank takes the step."""

    position: Position | None = None
    """The rows of the data that this batch holds, where they are known."""

    value_counts: Mapping[str, ValueCounts] | None = None
    """By feature: values that the model does not know and rows without one, where they are counted."""

    resume_state: State | None = field(default=None, init=False)
    """Where the data go on after the last row of this batch, for whoever has finished it."""

    def to(self, device: torch.device, non_blocking: bool = False) -> Self:
        return self._with(lambda tensor: tensor.to(device=device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """The batch in page-locked memory, where there is an accelerator to copy it to; else itself."""
        if not torch.accelerator.is_available():
            return self
        return self._with(lambda tensor: tensor.pin_memory())

    def record_stream(self, stream: torch.Stream) -> None:
        for name in _TENSOR_FIELDS:
            for part in getattr(self, name).values():
                part.record_stream(stream)

    @property
    def num_rows(self) -> int:
        for ids in (self.sparse_features, self.weighted_sparse_features):
            if BASE in ids:
                return int(ids[BASE].stride())
        if BASE in self.dense_features:
            return int(self.dense_features[BASE].values().shape[0])
        for tensors in (self.labels, self.sample_weights):
            for tensor in tensors.values():
                return int(tensor.shape[0])
        for jagged in (*self.jagged_labels.values(), *self.sequence_dense_features.values()):
            return int(jagged.lengths().shape[0])
        return 0

    @property
    def nbytes(self) -> int:
        num_bytes = 0 if self.reserves.data is None else self.reserves.nbytes
        for name in _TENSOR_FIELDS:
            for part in getattr(self, name).values():
                if isinstance(part, torch.Tensor):
                    num_bytes += part.nbytes
                    continue
                num_bytes += part.values().nbytes
                if not isinstance(part, KeyedTensor):
                    weights = part.weights_or_none()
                    num_bytes += part.lengths().nbytes + (0 if weights is None else weights.nbytes)
        return num_bytes

    def to_dict(self, sparse_dtype: torch.dtype | None = None) -> dict[str, torch.Tensor]:
        """All tensors under flat names: `f.values`, `f.lengths`, `f.weights`, `f.key_lengths`, label names.

        `sparse_dtype` casts the ids. With tiling, `batch_size` is the number of rows to tile to.
        """
        flat: dict[str, torch.Tensor] = {}
        for dense in self.dense_features.values():
            flat.update({f"{name}.values": values for name, values in dense.to_dict().items()})
        for sparse in (*self.sparse_features.values(), *self.weighted_sparse_features.values()):
            for name, ids in sparse.to_dict().items():
                flat |= _jagged(name, ids, sparse_dtype)
        for counts in self.sequence_mulval_lengths.values():
            for name, steps in counts.to_dict().items():
                flat |= {f"{name}.key_lengths": steps.values(), f"{name}.lengths": steps.lengths()}
        for jagged in (self.sequence_dense_features, self.jagged_labels):
            for name, steps in jagged.items():
                flat |= _jagged(name, steps)
        flat |= {**self.labels, **self.sample_weights, **self.additional_infos}
        if self.tile_size > 0:
            flat["batch_size"] = torch.tensor(self.tile_size, dtype=torch.int64)
        return flat

    def _with(self, change: Callable[[Any], Any]) -> Self:
        changed: dict[str, Any] = {
            name: {key: change(part) for key, part in getattr(self, name).items()} for name in _TENSOR_FIELDS
        }
        moved = replace(self, **changed)
        moved.resume_state = self.resume_state
        return moved


_TENSOR_FIELDS = [each.name for each in fields(Batch) if each.default_factory is dict]


def _jagged(name: str, part: JaggedTensor, dtype: torch.dtype | None = None) -> dict[str, torch.Tensor]:
    values = part.values()
    flat = {
        f"{name}.values": values if dtype is None else values.to(dtype),
        f"{name}.lengths": part.lengths(),
    }
    weights = part.weights_or_none()
    return flat if weights is None else {**flat, f"{name}.weights": weights}
