"""Arrow IPC files of both formats as rows of messages: the schema, dictionaries and record batches.

The headers of messages say where record batches lie and how many rows they have. Bodies are read when they are needed.
"""

import io
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.ipc as pa_ipc

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.storage import open_input, read_at
from penstock.readers.uris import is_uri

ROWS = "record batch"
"""What Arrow calls messages with rows."""
_FILE_MAGIC, _STREAM_MAGIC, _FEATHER_1_MAGIC = b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"
_FILE_START_BYTES = 8
_PREFIX_BYTES = 8
"""Before each message: a marker, and the size of its metadata."""


@dataclass(frozen=True, slots=True)
class Message:
    """Where a message lies: the schema, a dictionary or a record batch."""

    kind: str
    offset: int
    num_bytes: int
    body_bytes: int
    num_rows: int = 0


class _WithoutBody(io.RawIOBase):
    """One message as a file. Arrow asks for a body that is not there, which tells its size."""

    def __init__(self, header: bytes) -> None:
        self._header = io.BytesIO(header)
        self.body_bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        if found := self._header.read(size):
            return found
        self.body_bytes = size
        # A mapping that nobody looks at takes no memory, however large it is.
        return memoryview(mmap.mmap(-1, size))


class _Joined(io.RawIOBase):
    """Messages of an open file as one stream: how a record batch of a stream is read without those before it."""

    def __init__(self, source: pa.NativeFile, messages: Sequence[Message]) -> None:
        self._source = source
        self._messages = list(messages)
        self._position = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        if not self._messages:
            return b""
        message = self._messages[0]
        self._source.seek(message.offset + self._position)
        found = self._source.read_buffer(min(size, message.num_bytes - self._position))
        self._position += found.size
        if self._position == message.num_bytes:
            self._messages.pop(0)
            self._position = 0
        return found


def _scan_messages(source: pa.NativeFile, offset: int) -> Iterator[Message]:
    """All messages from an offset on; only their headers are read."""
    size_bytes = source.size()
    while len(prefix := read_at(source, _PREFIX_BYTES, offset)) == _PREFIX_BYTES:
        metadata_bytes = int.from_bytes(prefix[4:], "little", signed=True)
        if prefix[:4] != _STREAM_MAGIC:
            raise ValueError(f"no message begins at byte {offset}")
        if metadata_bytes == 0:
            return
        header = read_at(source, _PREFIX_BYTES + metadata_bytes, offset)
        if len(header) < _PREFIX_BYTES + metadata_bytes:
            raise CutShort(f"it ends inside of the message at byte {offset}")
        reading = _WithoutBody(header)
        message = pa_ipc.read_message(pa.PythonFile(reading, mode="r"))
        num_bytes = len(header) + reading.body_bytes
        if offset + num_bytes > size_bytes:
            raise CutShort(f"a message ends at byte {offset + num_bytes}, and the file at {size_bytes}")
        # Without columns, Arrow makes a record batch of the header alone.
        is_rows = message.type == ROWS
        num_rows = pa_ipc.read_record_batch(message, pa.schema([])).num_rows if is_rows else 0
        yield Message(message.type, offset, num_bytes, reading.body_bytes, num_rows)
        offset += num_bytes


class CutShort(ValueError):
    """The file ends before what its messages announce."""


@contextmanager
def reading_ipc(path: str) -> Iterator[None]:
    """Turns what Arrow raises over a damaged file into one line that names it."""
    try:
        yield
    except CutShort as error:
        raise DataError(f"{path}: is cut short: {error}; write it again") from error
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError) as error:
        reason = (str(error).splitlines() or ["no reason is known"])[0]
        raise DataError(f"{path}: cannot be read as Arrow IPC: {reason}; is it damaged?") from error


class OpenIpc:
    """An open file of either format: its schema, its messages, and any of its record batches."""

    def __init__(self, file: DataFile, messages: list[Message] | None = None) -> None:
        """`messages` are those that a scan has found; None: they are looked for."""
        self._map: mmap.mmap | None = None
        if is_uri(file.path):
            self._source = open_input(file.path)
        else:
            with open_input(file.path), open(file.path, "rb") as opened:
                self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            self._source = pa.BufferReader(pa.py_buffer(cast(Any, self._map)))
        start = read_at(self._source, len(_FILE_MAGIC), 0)
        self.is_stream = start.startswith(_STREAM_MAGIC)
        if not self.is_stream and start != _FILE_MAGIC:
            if start.startswith(_FEATHER_1_MAGIC):
                raise DataError(
                    f"{file.path}: is Feather version 1; write it again as version 2, or as Parquet"
                )
            raise DataError(
                f"{file.path}: is neither an Arrow IPC file nor a stream; is it cut short, or another format?"
            )
        end = read_at(self._source, len(_FILE_MAGIC), self._source.size() - len(_FILE_MAGIC))
        if not self.is_stream and end != _FILE_MAGIC:
            raise CutShort("it has no footer")
        if messages is None:
            messages = list(_scan_messages(self._source, 0 if self.is_stream else _FILE_START_BYTES))
        elif messages and messages[-1].offset + messages[-1].num_bytes > self._source.size():
            raise CutShort(f"it has {self._source.size()} bytes, fewer than when it was scanned")
        self.messages = messages
        self.batches = [message for message in self.messages if message.kind == ROWS]
        if not self.messages:
            raise CutShort("it has no schema")
        self.schema: pa.Schema = (
            self._joined(None) if self.is_stream else pa_ipc.open_file(self._source)
        ).schema
        assert self.schema.names is not None  # damaged names raise when they are first looked at
        self._opened: tuple[tuple[str, ...], Any] | None = None

    def _joined(self, batch: Message | None, options: pa_ipc.IpcReadOptions | None = None) -> Any:
        """A reader of a stream with the schema, the dictionaries that a record batch needs, and that one."""
        chosen = [message for message in self.messages if message.kind == "schema"]
        if batch is not None:
            chosen += [
                message
                for message in self.messages
                if message.kind == "dictionary" and (not self.is_stream or message.offset < batch.offset)
            ]
            chosen.append(batch)
        return pa_ipc.open_stream(pa.PythonFile(_Joined(self._source, chosen), mode="r"), options=options)

    def read_batch(self, index: int, columns: Sequence[str], is_whole: bool = False) -> pa.RecordBatch:
        """Some columns of a record batch; `is_whole`: as a copy. Else they show the map, unless they are compressed."""
        fields = [self.schema.get_field_index(name) for name in columns]
        options = pa_ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        if self.is_stream or (self._map is not None and not is_whole):
            batch = self._joined(self.batches[index], options).read_next_batch()
        else:
            # The reader keeps the dictionaries of the file, so it is made once.
            if self._opened is None or self._opened[0] != tuple(columns):
                self._opened = tuple(columns), pa_ipc.open_file(self._source, options=options)
            batch = self._opened[1].get_batch(index)
        batch = cast(pa.RecordBatch, batch.select(columns))
        batch.validate()
        if batch.num_rows != self.batches[index].num_rows:
            raise ValueError(f"record batch {index} has {batch.num_rows} rows, and its header says otherwise")
        return batch

    def give_back_pages(self) -> None:
        """Let go of the pages of the map that were looked at; what shows them stays valid."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)

    def is_mapped(self, batch: pa.RecordBatch) -> bool:
        """Whether all of a batch shows the map, so that some of its rows can be had alone."""
        if self._map is None:
            return False
        whole = pa.py_buffer(cast(Any, self._map))
        buffers = [buffer for array in batch.columns for buffer in array.buffers() if buffer]
        return all(
            0 <= buffer.address - whole.address < max(1, whole.size) for buffer in buffers if buffer.size
        )

    def close(self) -> None:
        self._opened = None
        self._source.close()
