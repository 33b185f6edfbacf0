"""The body of a record batch: ranges of its buffers."""

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa

from penstock.readers.arrow_ipc.messages import BatchMessage
from penstock.readers.storage import read_at

_LENGTH_BYTES = 8
"""In front of a compressed buffer: its length when it is unpacked."""
_NOT_PACKED = -1
"""That length where a buffer is stored as it is: packing would have made it larger."""


class Body:
    """Buffers of one message. Of one that is not compressed only ranges are read; others are unpacked whole, once."""

    def __init__(self, source: pa.NativeFile, message: BatchMessage) -> None:
        self._source = source
        self._message = message
        self._unpacked: dict[int, pa.Buffer] = {}

    def read(self, buffer: int, start: int, num_bytes: int) -> pa.Buffer:
        """A range of a buffer."""
        if start < 0 or num_bytes < 0:
            raise ValueError(f"buffer {buffer} has a negative range")
        if self._message.codec is not None:
            found = _range_of(self._unpack(buffer), start, num_bytes)
        else:
            offset, length = (int(value) for value in self._message.buffers[buffer])
            num_found = max(0, min(num_bytes, length - start))
            found = pa.py_buffer(read_at(self._source, num_found, self._message.body_start + offset + start))
        if found.size < num_bytes:
            raise ValueError(f"buffer {buffer} is too short")
        return found

    def _unpack(self, buffer: int) -> pa.Buffer:
        if buffer not in self._unpacked:
            offset, length = (int(value) for value in self._message.buffers[buffer])
            data = pa.py_buffer(read_at(self._source, length, self._message.body_start + offset))
            packed = _range_of(data, _LENGTH_BYTES, data.size)
            unpacked_bytes = _prefix(_range_of(data, 0, _LENGTH_BYTES).to_pybytes())
            is_packed = data.size > 0 and unpacked_bytes != _NOT_PACKED
            self._unpacked[buffer] = self._decompress(packed, unpacked_bytes) if is_packed else packed
        return self._unpacked[buffer]

    def _decompress(self, packed: pa.Buffer, num_bytes: int) -> pa.Buffer:
        codec: Any = pa.Codec(cast(Any, self._message.codec))
        return cast(pa.Buffer, codec.decompress(packed, num_bytes))


def _range_of(buffer: pa.Buffer, start: int, num_bytes: int) -> pa.Buffer:
    """As much of a range as there is."""
    start = min(start, buffer.size)
    return buffer.slice(start, min(num_bytes, buffer.size - start))


def buffer_bytes(source: pa.NativeFile, message: BatchMessage, buffers: Sequence[int]) -> list[int]:
    """The sizes of some buffers in memory; of compressed ones the file is asked."""
    chosen = message.buffers[list(buffers)]
    if message.codec is None:
        return [int(length) for length in chosen["length"]]
    return [
        _unpacked_bytes(read_at(source, _LENGTH_BYTES, message.body_start + int(offset)), int(length))
        for offset, length in chosen
    ]


def _unpacked_bytes(prefix: bytes, stored_bytes: int) -> int:
    """The size of a compressed buffer in memory, from the bytes that it begins with."""
    if not stored_bytes:
        return 0
    num_bytes = _prefix(prefix)
    return stored_bytes - _LENGTH_BYTES if num_bytes == _NOT_PACKED else num_bytes


def _prefix(prefix: bytes) -> int:
    num_bytes = int.from_bytes(prefix, "little", signed=True)
    if num_bytes < _NOT_PACKED:
        raise ValueError("a compressed buffer has a negative length")
    return num_bytes
