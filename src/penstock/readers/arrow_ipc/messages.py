"""The messages of Arrow IPC files, from their metadata alone.

A file of either format is a row of messages: the schema, dictionaries, record batches. Each has metadata, and a body
with the buffers of the columns. The file format has a footer that says where they are.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.readers.arrow_ipc.flatbuffers import FlatTable
from penstock.readers.storage import read_at

FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
OLD_FEATHER_MAGIC = b"FEA1"

_PREFIX = struct.Struct("<4sI")
"""In front of every message: a mark, and the size of its metadata."""
_FILE_START_BYTES = 8
_FOOTER_TAIL = struct.Struct("<I6s")
_CODECS = ("lz4", "zstd")
_SCHEMA, _DICTIONARY, _RECORD_BATCH = 1, 2, 3
_PLACE = np.dtype([("offset", "<i8"), ("metadata_bytes", "<i4"), ("unused", "<i4"), ("body_bytes", "<i8")])
_NODE = np.dtype([("length", "<i8"), ("null_count", "<i8")])
_BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])


@dataclass(frozen=True, slots=True)
class BatchMessage:
    """A record batch, or a dictionary: where it lies, and what its metadata says."""

    start: int
    end: int
    body_start: int
    num_rows: int
    null_counts: NDArray[np.int64]
    """Of each array, those inside of lists included."""
    buffers: NDArray[Any]
    """Offset in the body, and length, of each buffer."""
    num_view_buffers: tuple[int, ...]
    """How many buffers each column of string views has beyond the usual ones."""
    codec: str | None
    """How each buffer is compressed; None: they are not."""
    dictionary_id: int = 0
    is_delta: bool = False
    """Whether a dictionary goes on where the one before it ended."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Where everything lies in a file."""

    is_stream: bool
    schema_start: int
    schema_end: int
    dictionary_ids: tuple[tuple[int, ...], ...]
    """For each column those of its dictionaries, in the order in which its type has them."""
    dictionaries: tuple[BatchMessage, ...]
    batches: tuple[BatchMessage, ...]


@dataclass(frozen=True, slots=True)
class _Message:
    kind: int
    header: FlatTable | None
    start: int
    body_start: int
    end: int


class CutShort(ValueError):
    """The file ends before what its metadata tells of."""


def read_messages(source: pa.NativeFile, size_bytes: int) -> Messages | None:
    """All messages of a file of either format; None: it is of neither."""
    start = read_at(source, len(FILE_MAGIC), 0)
    if start == FILE_MAGIC:
        return _of_footer(source, size_bytes)
    if start.startswith(STREAM_MAGIC):
        return _of_stream(source, size_bytes)
    return None


def _of_footer(source: pa.NativeFile, size_bytes: int) -> Messages:
    tail_offset = size_bytes - _FOOTER_TAIL.size
    tail = read_at(source, _FOOTER_TAIL.size, max(0, tail_offset))
    footer_bytes, magic = _FOOTER_TAIL.unpack(tail) if len(tail) == _FOOTER_TAIL.size else (0, b"")
    if magic != FILE_MAGIC or footer_bytes > tail_offset:
        raise CutShort("it has no footer")
    footer = FlatTable.root(read_at(source, footer_bytes, tail_offset - footer_bytes))
    schema = _read(source, _FILE_START_BYTES, size_bytes)
    ids = _dictionary_ids(footer.table(1))
    dictionaries, batches = (
        tuple(
            _batch(_read(source, int(place["offset"]), size_bytes)) for place in footer.vector(field, _PLACE)
        )
        for field in (2, 3)
    )
    start, end = (0, 0) if schema is None else (schema.start, schema.end)
    return Messages(False, start, end, ids, dictionaries, batches)


def _of_stream(source: pa.NativeFile, size_bytes: int) -> Messages:
    schema, *others = _walk(source, size_bytes)
    ids = _dictionary_ids(schema.header if schema.kind == _SCHEMA else None)
    dictionaries = tuple(_batch(message) for message in others if message.kind == _DICTIONARY)
    batches = tuple(_batch(message) for message in others if message.kind == _RECORD_BATCH)
    return Messages(True, schema.start, schema.end, ids, dictionaries, batches)


def _dictionary_ids(schema: FlatTable | None) -> tuple[tuple[int, ...], ...]:
    if schema is None:
        raise ValueError("it does not begin with a schema")
    return tuple(tuple(_ids_in(field)) for field in schema.tables(1))


def _ids_in(field: FlatTable) -> Iterator[int]:
    """The dictionary of a field, or those of the fields inside it."""
    encoding = field.table(4)
    if encoding is not None:
        yield encoding.integer(0, "q")
        return
    for child in field.tables(5):
        yield from _ids_in(child)


def _walk(source: pa.NativeFile, size_bytes: int) -> Iterator[_Message]:
    """The messages of a stream, one behind the other; it ends with a mark, or with the file."""
    offset = 0
    while offset < size_bytes:
        message = _read(source, offset, size_bytes)
        if message is None:
            return
        yield message
        offset = message.end


def _read(source: pa.NativeFile, offset: int, size_bytes: int) -> _Message | None:
    """The message at an offset; None: the mark at the end of a stream."""
    prefix = read_at(source, _PREFIX.size, offset)
    if len(prefix) < _PREFIX.size:
        raise CutShort(f"at byte {offset} a message should begin")
    mark, metadata_bytes = _PREFIX.unpack(prefix)
    if mark != STREAM_MAGIC:
        raise ValueError(f"at byte {offset} no message begins")
    if metadata_bytes == 0:
        return None
    body_start = offset + _PREFIX.size + metadata_bytes
    if body_start > size_bytes:
        raise CutShort(f"the message at byte {offset} ends behind it")
    message = FlatTable.root(read_at(source, metadata_bytes, offset + _PREFIX.size))
    end = body_start + message.integer(3, "q")
    if end > size_bytes:
        raise CutShort(f"the message at byte {offset} ends behind it")
    return _Message(message.integer(1, "B"), message.table(2), offset, body_start, end)


def _batch(message: _Message | None) -> BatchMessage:
    header = None if message is None else message.header
    dictionary_id, is_delta = 0, False
    if message is not None and header is not None and message.kind == _DICTIONARY:
        dictionary_id, is_delta = header.integer(0, "q"), bool(header.integer(2, "B"))
        header = header.table(1)
    if message is None or header is None:
        raise ValueError("a record batch is missing")
    compression = header.table(3)
    return BatchMessage(
        message.start,
        message.end,
        message.body_start,
        header.integer(0, "q"),
        header.vector(1, _NODE)["null_count"],
        header.vector(2, _BUFFER),
        tuple(header.vector(4, "<i8").tolist()),
        None if compression is None else _CODECS[compression.integer(0, "B")],
        dictionary_id,
        is_delta,
    )
