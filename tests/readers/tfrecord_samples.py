"""Records written byte by byte, in ways that our own writer never uses, and what our reader makes of them."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.config.sizes import MIB
from penstock.readers.files import list_files
from penstock.readers.scan import BlockStream, ReadRequest, ScannedFiles, scan_files
from penstock.readers.sections import ReadingSection
from penstock.readers.tfrecord import scan_tfrecord_with
from penstock.runtime.budget import Share
from tests.readers.samples import table_from

BYTES, FLOATS, INT64S = 1, 2, 3


def crc32c(data: bytes) -> int:
    """Bit by bit, as the polynomial says it."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """A record with right checksums, whatever its data."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def sized(number: int, content: bytes) -> bytes:
    """A field that is a message, a string or packed numbers: a tf.train.Feature is a field of its kind."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def packed_int64s(*values: int) -> bytes:
    return sized(1, b"".join(map(varint, values)))


def loose_int64s(*values: int) -> bytes:
    return b"".join(varint(1 << 3) + varint(value) for value in values)


def packed_floats(*values: float) -> bytes:
    return sized(1, struct.pack(f"<{len(values)}f", *values))


def loose_floats(*values: float) -> bytes:
    return b"".join(varint(1 << 3 | 5) + struct.pack("<f", value) for value in values)


def strings(*values: str) -> bytes:
    return b"".join(sized(1, value.encode()) for value in values)


def entry(key: str, feature: bytes) -> bytes:
    """One entry of the map of features, without what stands around it."""
    return sized(1, key.encode()) + sized(2, feature)


def example(*entries: bytes) -> bytes:
    return sized(1, b"".join(sized(1, content) for content in entries))


def int64(key: str, *values: int) -> bytes:
    return entry(key, sized(INT64S, packed_int64s(*values) if values else b""))


def write_records(path: Path, *datas: bytes) -> Path:
    path.write_bytes(b"".join(map(record, datas)))
    return path


def scan_of(path: Path | str, schema: Mapping[str, Any] | None = None, **wanted: Any) -> ScannedFiles:
    if schema is None:
        return scan_files(ReadingSection(), list_files(str(path)), ReadRequest(**wanted))
    return scan_tfrecord_with(list_files(str(path)), ReadRequest(**wanted), schema)


def read(path: Path | str, schema: Mapping[str, Any] | None = None, **wanted: Any) -> pa.Table:
    found = scan_of(path, schema, **wanted)
    return table_from(BlockStream(found, Share("reading", max(MIB, found.sizes.ample_bytes))))
