"""Record batches and results in shared memory: no value is pickled, and none is copied more than once.

A record batch lies at the start of its region as an Arrow IPC stream, a worker reads it in place. A result is
pickled without its arrays (protocol 5, out of band): those that are views of the record batch stay where they
are, the others are copied behind it.
"""

import gc
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.data.workers.arena import aligned

Bytes = NDArray[np.uint8]


class Span(NamedTuple):
    """Bytes of a region, counted from its start."""

    begin: int
    num_bytes: int


class ResultTooLarge(Exception):
    """A result does not fit behind its record batch; says how many bytes the region would need."""

    def __init__(self, needed_bytes: int) -> None:
        self.needed_bytes = needed_bytes
        super().__init__(needed_bytes)


class ViewKept(Exception):
    """Somebody still uses memory that is about to hold another batch."""


def batch_bytes(batch: pa.RecordBatch) -> int:
    """Bytes that a record batch takes in a region."""
    counter = pa.MockOutputStream()
    _write(batch, counter)
    return int(counter.size())


def write_batch(batch: pa.RecordBatch, region: memoryview) -> None:
    """Copy a record batch, schema and dictionaries included, to the start of a region."""
    _write(batch, pa.FixedSizeBufferWriter(pa.py_buffer(region)))


def read_batch(region: memoryview) -> pa.RecordBatch:
    """The record batch at the start of a region; its columns are views of the region."""
    with pa.ipc.open_stream(pa.py_buffer(region)) as stream:
        return stream.read_next_batch()


def _write(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)


class _Pickler(pickle.Pickler):
    """Lets every array go out of band, also those that NumPy would pickle because they are not contiguous."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not np.ndarray or value.flags.forc or value.dtype.hasobject:
            return NotImplemented
        if not any(value.strides):
            # One value, seen many times, stays one: lengths of columns with one value in every row.
            return np.broadcast_to, (np.array(value[(0,) * value.ndim]), value.shape)
        return np.ascontiguousarray(value).__reduce_ex__(5)


def write_result(result: object, region: memoryview, taken_bytes: int) -> list[Span]:
    """Put a result behind the record batch, which has taken the first bytes of the region.

    Gives the spans of the pickle and of each array.
    """
    stream = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(result)
    parts = [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]
    start = _address(region)
    end = taken_bytes
    spans = []
    for part in parts:
        begin = _address(part) - start
        if not 0 <= begin <= begin + part.nbytes <= taken_bytes:
            begin = aligned(end)
            end = begin + part.nbytes
        spans.append(Span(begin, part.nbytes))
    if end > len(region):
        raise ResultTooLarge(end)
    for part, span in zip(parts, spans, strict=True):
        if span.begin >= taken_bytes:
            region[span.begin : span.begin + span.num_bytes] = part
    return spans


def read_result(region: memoryview, spans: list[Span]) -> Any:
    """A result with memory of its own."""
    parts = [bytearray(region[span.begin : span.begin + span.num_bytes]) for span in spans]
    return _unpickle(parts)


def use_result(region: memoryview, spans: list[Span], use: Callable[[Any, pa.RecordBatch], Any]) -> Any:
    """What `use` makes of a result and its record batch, both of them views of the region while it runs."""
    with Borrowed(region) as borrowed:
        return use(
            _unpickle([borrowed.part(span) for span in spans]),
            read_batch(borrowed.part(Span(0, len(region)))),
        )


class Borrowed:
    """Views of a region for the length of a `with` block; one that outlives the block is an error, told at once.

    Without this, whoever keeps a view would see the values of a later batch in it.
    """

    def __init__(self, region: memoryview) -> None:
        self._memory = np.frombuffer(region, np.uint8)
        self._parts: list[weakref.ref[Bytes]] = []

    def part(self, span: Span) -> memoryview:
        """A part of the region. The array that it views is this part's alone, and lives as long as any view."""
        part = self._memory[span.begin : span.begin + span.num_bytes]
        self._parts.append(weakref.ref(part))
        return part.data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._in_use:
            # Objects that refer to each other live until they are collected.
            gc.collect()
            if self._in_use:
                raise ViewKept("views of a batch were kept; copy what is needed longer than the batch")

    @property
    def _in_use(self) -> bool:
        return any(part() is not None for part in self._parts)


def _unpickle(parts: list[Any]) -> Any:
    # Written by a process of our own a moment ago, never by a file.
    return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301


def _address(part: memoryview) -> int:
    return int(np.frombuffer(part, np.uint8).ctypes.data) if part.nbytes else -1
