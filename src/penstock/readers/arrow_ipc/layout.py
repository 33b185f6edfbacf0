"""Where the record batches of all files lie, and what their wanted columns take in memory."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.ipc as pa_ipc

from penstock.config.errors import DataError
from penstock.readers.arrow_ipc.body import buffer_bytes
from penstock.readers.arrow_ipc.messages import (
    OLD_FEATHER_MAGIC,
    BatchMessage,
    CutShort,
    Messages,
    read_messages,
)
from penstock.readers.arrow_ipc.stored import Stored, StoredColumns
from penstock.readers.columns import join_schemas, project
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint, ends_checksum, fingerprint
from penstock.readers.storage import open_input, read_at

_CAST_FACTOR = 4
"""How many times its own size a column may take when it is given out as another type: int8 becomes int32."""


@dataclass(frozen=True, slots=True)
class IpcBatch:
    """One record batch: a block."""

    file_index: int
    message: BatchMessage
    index: int
    """Its number in the file."""
    first_row: int
    packed_bytes: int
    """Of the largest of its wanted buffers while it is unpacked; 0: none is compressed."""
    decoded_bytes: int
    """Of its wanted columns in memory, and of what those become that are given out as another type."""

    @property
    def num_rows(self) -> int:
        """Its rows."""
        return self.message.num_rows

    @property
    def is_compressed(self) -> bool:
        """Whether its columns can only be had whole."""
        return self.message.codec is not None

    @property
    def row_bytes(self) -> int:
        """The mean, at least 1."""
        return max(1, -(-self.decoded_bytes // max(1, self.num_rows)))


@dataclass(frozen=True, slots=True)
class IpcFile:
    """What opening a file takes."""

    file: DataFile
    messages: Messages
    schema: pa.Schema
    """All columns, as they stand in the file."""
    columns: StoredColumns
    dictionary_bytes: int
    """What all its dictionaries take in memory."""

    def stored(self, message: BatchMessage, names: Sequence[str]) -> list[Stored]:
        """Where some columns lie in a record batch."""
        columns = self.columns.of(message.num_view_buffers)
        return [columns[self.schema.get_field_index(name)] for name in names]


@dataclass(frozen=True, slots=True)
class IpcLayout:
    """All files, their record batches, and the columns that they agree on."""

    files: tuple[IpcFile, ...]
    batches: tuple[IpcBatch, ...]
    schema: pa.Schema
    fingerprints: tuple[Fingerprint, ...]


def read_layout(files: Sequence[DataFile], columns: Sequence[str] | None) -> IpcLayout:
    """Read the metadata of all files; files without rows have no types to disagree with."""
    opened = [_read_file(file) for file in files]
    with_rows = [one for one in opened if any(batch.num_rows for batch in one.messages.batches)] or opened[:1]
    schema: pa.Schema | None = None
    for one in with_rows:
        wanted = project(one.schema, columns, one.file.path)
        schema = join_schemas(schema, with_rows[0].file.path, wanted, one.file.path)
        columns = schema.names
    if schema is None:
        raise DataError("no Arrow files are given")
    batches = [batch for index, one in enumerate(opened) for batch in _batches_of(one, index, schema)]
    file_rows = [sum(batch.num_rows for batch in one.messages.batches) for one in opened]
    marks = tuple(
        fingerprint(file, num_rows, ends_checksum(file))
        for file, num_rows in zip(files, file_rows, strict=True)
    )
    return IpcLayout(tuple(opened), tuple(batches), schema, marks)


@contextmanager
def reading_ipc(path: str) -> Iterator[None]:
    """Say in one line what is wrong with a file."""
    try:
        yield
    except CutShort as error:
        raise DataError(f"{path}: is cut short: {error}; write it again") from error
    except (pa.ArrowException, OSError, ValueError, IndexError, struct.error) as error:
        reason = (str(error).splitlines() or ["no reason is known"])[0]
        raise DataError(f"{path}: cannot be read as Arrow IPC: {reason}; is it damaged?") from error


def _read_file(file: DataFile) -> IpcFile:
    with open_input(file.path) as source, reading_ipc(file.path):
        messages = read_messages(source, file.size_bytes)
        if messages is None:
            raise _unknown(file, read_at(source, len(OLD_FEATHER_MAGIC), 0))
        schema = _read_schema(source, messages)
        assert schema.names is not None  # damaged names raise when they are first looked at
        num_copies = 1 + any(dictionary.is_delta for dictionary in messages.dictionaries)
        dictionary_bytes = num_copies * sum(
            sum(buffer_bytes(source, dictionary, range(len(dictionary.buffers))))
            for dictionary in messages.dictionaries
        )
        columns = StoredColumns(schema.types, messages.dictionary_ids)
        return IpcFile(file, messages, schema, columns, dictionary_bytes)


def _read_schema(source: pa.NativeFile, messages: Messages) -> pa.Schema:
    """The columns of a file: a file has them in its footer, a stream at its start."""
    if not messages.is_stream:
        return pa_ipc.open_file(source).schema
    num_bytes = messages.schema_end - messages.schema_start
    return pa_ipc.read_schema(pa.py_buffer(read_at(source, num_bytes, messages.schema_start)))


def _unknown(file: DataFile, magic: bytes) -> DataError:
    if magic == OLD_FEATHER_MAGIC:
        return DataError(f"{file.path}: is Feather version 1; write it again as version 2, or as Parquet")
    return DataError(
        f"{file.path}: is neither an Arrow IPC file nor a stream; is it cut short, or another format?"
    )


def _batches_of(one: IpcFile, file_index: int, schema: pa.Schema) -> Iterator[IpcBatch]:
    """The record batches of a file that have rows, with the sizes of the wanted columns."""
    messages = [(index, message) for index, message in enumerate(one.messages.batches) if message.num_rows]
    if not messages:
        return
    first_row = 0
    with open_input(one.file.path) as source, reading_ipc(one.file.path):
        for index, message in messages:
            packed_bytes, decoded_bytes = _sizes(source, one, message, schema)
            yield IpcBatch(file_index, message, index, first_row, packed_bytes, decoded_bytes)
            first_row += message.num_rows


def _sizes(source: pa.NativeFile, one: IpcFile, message: BatchMessage, schema: pa.Schema) -> tuple[int, int]:
    """What the wanted columns of a record batch take while they are unpacked, and in memory."""
    packed_bytes = decoded_bytes = 0
    for stored, field in zip(one.stored(message, schema.names), schema, strict=True):
        buffers = list(stored.all_buffers())
        column_bytes = sum(buffer_bytes(source, message, buffers))
        decoded_bytes += column_bytes * (1 + cast_factor(stored.type, field.type))
        if message.codec is not None:
            packed_bytes = max(packed_bytes, int(message.buffers["length"][buffers].max(initial=0)))
    return packed_bytes, decoded_bytes


def cast_factor(value_type: Any, given_type: Any) -> int:
    """How many times its own size a column takes besides when it is given out as another type; 0: it is not."""
    return 0 if value_type == given_type else _CAST_FACTOR
