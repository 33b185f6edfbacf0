"""Arrow record batches beside tensors: carried as they are, without a copy for each column."""

from typing import Any

import pyarrow as pa
import torch


class RecordBatchTensor:
    """A record batch, or None, held in one torch storage as an Arrow IPC stream (schema and all).

    torch moves the storage between processes through shared memory; `get` reads the columns in place. None
    stays None, and a record batch of zero rows stays one.
    """

    def __init__(self, record_batch: pa.RecordBatch | None = None) -> None:
        self.data: torch.Tensor | None = None if record_batch is None else _written(record_batch)

    def get(self) -> pa.RecordBatch | None:
        """The record batch. Its columns are views of the storage, and keep it alive."""
        if self.data is None:
            return None
        with pa.ipc.open_stream(_buffer(self.data)) as stream:
            return stream.read_next_batch()

    @property
    def nbytes(self) -> int:
        return 0 if self.data is None else self.data.nbytes


def _written(record_batch: pa.RecordBatch) -> torch.Tensor:
    """The stream is written twice: first to nowhere, to learn its size, then straight to its place."""
    counter = pa.MockOutputStream()
    _write(record_batch, counter)
    data = torch.empty(counter.size(), dtype=torch.uint8)
    _write(record_batch, pa.FixedSizeBufferWriter(_buffer(data)))
    return data


def _buffer(data: torch.Tensor) -> pa.Buffer:
    """Arrow's view of the storage. The array in between is what keeps the storage alive."""
    array: Any = data.numpy()
    return pa.py_buffer(array)


def _write(record_batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, record_batch.schema) as stream:
        stream.write_batch(record_batch)
