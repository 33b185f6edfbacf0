"""The files that TensorBoard reads, written without its library: importing that takes hundreds of MiB and seconds.

A file is a sequence of records as in TFRecord files, each a protobuf message Event (its fields are named in
tensorboard/compat/proto/event.proto): a wall time, a step, and a summary of scalars or histograms. The first says the
version of the format; the second starts a session, on which readers drop what earlier files of the folder have from
that step on.
"""

import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.runtime.crc32c import masked_crc32c

NUM_BUCKETS = 30
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_SESSION_START = 1


class EventFile:
    """One file of a folder; later files of the folder follow earlier ones in the order of their names."""

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        """`first_step` is the first that this file tells of: earlier files count only below it."""
        folder.mkdir(parents=True, exist_ok=True)
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        name = f"events.out.tfevents.{seconds:010d}.{nanoseconds:09d}.{socket.gethostname()}"
        self._file = (folder / name).open("xb")
        self._write(_text(3, "brain.Event:2"), 0)
        self._write(_message(7, _integer(1, _SESSION_START)), first_step)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """One number under each tag."""
        tagged = [_message(1, _text(1, tag) + _float(2, value)) for tag, value in values.items()]
        self._write(_message(5, b"".join(tagged)), step)

    def histogram(self, tag: str, values: NDArray[Any], step: int) -> None:
        """How values are distributed; those that are not finite are left out."""
        self._write(_message(5, _message(1, _text(1, tag) + _message(5, _histogram(values)))), step)

    def flush(self) -> None:
        """Let readers see what was written."""
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def _write(self, content: bytes, step: int) -> None:
        event = _double(1, time.time()) + _integer(2, step) + content
        length = struct.pack("<Q", len(event))
        self._file.write(b"".join((length, _checksum(length), event, _checksum(event))))


def _histogram(values: NDArray[Any]) -> bytes:
    known = np.asarray(values, np.float64).ravel()
    known = known[np.isfinite(known)]
    if not len(known):
        known = np.zeros(1)
    counts, edges = np.histogram(known, NUM_BUCKETS)
    return b"".join(
        (
            _double(1, known.min()),
            _double(2, known.max()),
            _double(3, len(known)),
            _double(4, known.sum()),
            _double(5, float(known @ known)),
            _bytes(6, edges[1:].astype("<f8").tobytes()),
            _bytes(7, counts.astype("<f8").tobytes()),
        )
    )


def _checksum(data: bytes) -> bytes:
    return struct.pack("<I", int(masked_crc32c(np.frombuffer(data, np.uint8), 0, len(data))))


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _integer(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _key(field, _DOUBLE) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _key(field, _FLOAT) + struct.pack("<f", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


_message = _bytes
"""A message within a message is its bytes."""
