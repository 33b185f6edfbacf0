"""Arrow IPC files: the file format (also called Feather version 2) and the stream format. Blocks are record batches.

The headers of messages say where record batches lie and how many rows they have; bodies are read when they are needed.
A local file is mapped, and rows are copied out of the map one column at a time. The pages of a column are given back
after each copy: mapped pages count as memory of the process, and the kernel maps up to 2 MiB for a single value.
So any number of rows of a large record batch can be read alone. A compressed record batch, and one in an object
store, is decoded whole, and two of them must fit the share: one in use and the next one.
"""

import io
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as pa_ipc

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.columns import as_type, join_schemas, project, with_items, with_types
from penstock.readers.files import DataFile, is_uri
from penstock.readers.order import Blocks
from penstock.readers.scan import (
    BlockDecoder,
    Fingerprint,
    ReadRequest,
    ReadSizes,
    RollingLease,
    ScannedFiles,
    ends_checksum,
)
from penstock.readers.sections import ReadingSection
from penstock.readers.storage import open_input, read_at
from penstock.readers.stream import ROW_ID_BYTES
from penstock.runtime.budget import Share

_FILE_MAGIC, _STREAM_MAGIC, _FEATHER_1_MAGIC = b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"
_FILE_START_BYTES = 8
_PREFIX_BYTES = 8  # before each message: a marker, and the size of its metadata
_PART_BYTES, _MIN_PART_BYTES = 8 * MIB, 64 * KIB
"""What rows that are given out together take, where the share allows it, and where it does not."""
_CAST_FACTOR = 4
"""A column that is given out as another type takes up to so many times its size besides: int8 becomes int32."""
_SLACK_BYTES = 16 * KIB  # rows of small record batches differ more from those that were sampled
_SAMPLED_FILES = 8


class Message(NamedTuple):
    """Where a message lies: the schema, a dictionary or a record batch."""

    kind: str
    offset: int
    num_bytes: int
    body_bytes: int
    num_rows: int


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
        start, size_bytes = read_at(self._source, len(_FILE_MAGIC), 0), self._source.size()
        self._is_stream = start.startswith(_STREAM_MAGIC)
        if start.startswith(_FEATHER_1_MAGIC):
            raise DataError(f"{file.path}: is Feather version 1; write it again as version 2, or as Parquet")
        if not self._is_stream and start != _FILE_MAGIC:
            raise DataError(
                f"{file.path}: is neither an Arrow IPC file nor a stream; is it cut short, or another format?"
            )
        end = read_at(self._source, len(_FILE_MAGIC), size_bytes - len(_FILE_MAGIC))
        if not self._is_stream and end != _FILE_MAGIC:
            raise CutShort("it has no footer")
        self.messages = list(self._scan_messages()) if messages is None else messages
        if not self.messages:
            raise CutShort("it has no schema")
        if self.messages[-1].offset + self.messages[-1].num_bytes > size_bytes:
            raise CutShort(f"it has {size_bytes} bytes, fewer than when it was scanned")
        self.batches = [message for message in self.messages if message.kind == "record batch"]
        reader = self._joined(None) if self._is_stream else pa_ipc.open_file(self._source)
        self.schema: pa.Schema = reader.schema
        assert self.schema.names is not None  # damaged names raise when they are first looked at
        self._opened: tuple[tuple[str, ...], Any] | None = None

    def _scan_messages(self) -> Iterator[Message]:
        """Reads headers alone."""
        source, size_bytes = self._source, self._source.size()
        offset = 0 if self._is_stream else _FILE_START_BYTES
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
            is_rows = message.type == "record batch"
            num_rows = pa_ipc.read_record_batch(message, pa.schema([])).num_rows if is_rows else 0
            yield Message(message.type, offset, num_bytes, reading.body_bytes, num_rows)
            offset += num_bytes

    def _joined(self, batch: Message | None, options: pa_ipc.IpcReadOptions | None = None) -> Any:
        """A reader of a stream with the schema, the dictionaries that a record batch needs, and that one."""
        chosen = [message for message in self.messages if message.kind == "schema"]
        if batch is not None:
            end = batch.offset if self._is_stream else self._source.size()
            chosen += [item for item in self.messages if item.kind == "dictionary" and item.offset < end]
            chosen.append(batch)
        return pa_ipc.open_stream(pa.PythonFile(_Joined(self._source, chosen), mode="r"), options=options)

    def read_batch(self, index: int, columns: Sequence[str], is_whole: bool = False) -> pa.RecordBatch:
        """Some columns of a record batch; `is_whole`: as a copy. Else they show the map, unless they are compressed."""
        fields = [self.schema.get_field_index(name) for name in columns]
        options = pa_ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        if self._is_stream or (self._map is not None and not is_whole):
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
        start = pa.py_buffer(cast(Any, self._map)).address
        buffers = [buffer for array in batch.columns for buffer in array.buffers() if buffer and buffer.size]
        return all(0 <= buffer.address - start < len(self._map) for buffer in buffers)

    def close(self) -> None:
        self._opened = None
        self._source.close()


@dataclass(frozen=True, slots=True)
class IpcBatch:
    """A record batch that has rows: a block."""

    file_index: int
    index: int  # in the file
    first_row: int
    num_rows: int
    body_bytes: int
    is_whole: bool
    decoded_bytes: int  # about what it takes in memory; of one that is not decoded whole at most
    dictionary_bytes: int  # of the requested columns


@dataclass(kw_only=True, eq=False)
class ScannedIpc(ScannedFiles):
    messages: tuple[list[Message], ...]  # of each file
    batches: tuple[IpcBatch, ...]
    mean_row_bytes: int
    max_row_bytes: int

    @cached_property
    def packed_bytes(self) -> int:
        """What the largest record batch takes as stored, while it is decoded whole."""
        whole = [batch for batch in self.batches if batch.is_whole]
        return max((min(batch.body_bytes, batch.decoded_bytes) for batch in whole), default=0)

    @cached_property
    def sizes(self) -> ReadSizes:
        """Any two neighbours fit the share: record batches, or parts of at most so many bytes."""
        min_bytes = ample_bytes = block_bytes = 1
        for batch in self.batches:
            decoded_bytes, dictionary_bytes = batch.decoded_bytes, batch.dictionary_bytes
            if batch.is_whole:
                small_bytes = large_bytes = decoded_bytes + min(_SLACK_BYTES, decoded_bytes)
                block_bytes = max(block_bytes, decoded_bytes)
            else:
                small_bytes = max(self.max_row_bytes, min(_MIN_PART_BYTES, decoded_bytes))
                large_bytes = max(self.max_row_bytes, min(_PART_BYTES, decoded_bytes))
                block_bytes = max(block_bytes, min(_PART_BYTES, decoded_bytes))
            min_bytes = max(min_bytes, dictionary_bytes + small_bytes)
            ample_bytes = max(ample_bytes, dictionary_bytes + large_bytes)
        return ReadSizes(self.packed_bytes + 2 * min_bytes, self.packed_bytes + 2 * ample_bytes, block_bytes)

    @property
    def row_bytes(self) -> int:
        return self.mean_row_bytes + ROW_ID_BYTES

    def decoder(self, share: Share) -> BlockDecoder:
        return IpcDecoder(self, share)


def scan_ipc(_: ReadingSection, files: Sequence[DataFile], request: ReadRequest) -> ScannedFiles:
    columns, schema, first_path = request.columns, None, files[0].path
    messages: list[list[Message]] = []
    marks: list[Fingerprint] = []
    probes: list[_Probe] = []
    sampled_every = -(-len(files) // _SAMPLED_FILES)
    for index, file in enumerate(files):
        with reading_ipc(file.path):
            opened = OpenIpc(file)
            num_rows = sum(message.num_rows for message in opened.batches)
            # A file without rows has no types to disagree with: writers often know none for it.
            if num_rows or (schema is None and index == len(files) - 1):
                projected = project(opened.schema, columns, file.path)
                if schema is None:
                    schema, first_path, columns = projected, file.path, projected.names
                elif not schema.equals(projected):
                    schema = join_schemas(schema, first_path, projected, file.path)
            if num_rows and schema is not None:
                probes.append(_probe(opened, schema, is_sampled=index % sampled_every == 0))
            else:
                probes.append(_Probe())
            messages.append(opened.messages)
            opened.close()
        marks.append((file.name, file.size_bytes, num_rows, ends_checksum(file)))
    assert schema is not None  # that of the last file counts even without rows
    sampled = [probe.row_bytes for probe in probes if probe.row_bytes] or [1.0]
    mean_bytes, max_bytes = max(1, -int(-np.mean(sampled) // 1)), max(1, -int(-max(sampled) // 1))
    batches: list[IpcBatch] = []
    for file_index, (found, probe) in enumerate(zip(messages, probes, strict=True)):
        first_row = 0
        for index, message in enumerate(message for message in found if message.kind == "record batch"):
            is_whole, num_rows, body_bytes = probe.is_whole, message.num_rows, message.body_bytes
            decoded_bytes = num_rows * max_bytes if is_whole else probe.cast_factor * body_bytes
            sizes = (num_rows, body_bytes, is_whole, decoded_bytes, probe.dictionary_bytes)
            if num_rows:
                batches.append(IpcBatch(file_index, index, first_row, *sizes))
            first_row += num_rows
    return ScannedIpc(
        files=tuple(files),
        fingerprints=tuple(marks),
        columns=schema,
        blocks=Blocks.of((batch.file_index, batch.first_row, batch.num_rows) for batch in batches),
        messages=tuple(messages),
        batches=tuple(batches),
        mean_row_bytes=mean_bytes,
        max_row_bytes=max_bytes,
    )


class _Probe(NamedTuple):
    is_whole: bool = False
    dictionary_bytes: int = 0
    row_bytes: float = 0.0  # where all columns were looked at
    cast_factor: int = 1


def _probe(opened: OpenIpc, schema: pa.Schema, is_sampled: bool) -> _Probe:
    with_rows = [index for index, message in enumerate(opened.batches) if message.num_rows]
    types = {name: opened.schema.field(name).type for name in schema.names}
    worded = [name for name in schema.names if pa.types.is_dictionary(types[name])]
    # A column of numbers is quickly decoded. In a stream dictionaries grow, so the last record batch is looked at.
    numbers = [name for name in schema.names if pa.types.is_primitive(types[name])]
    probed = opened.read_batch(
        with_rows[-1], list(dict.fromkeys([*numbers[:1], *worded])) or schema.names[:1]
    )
    is_whole = not opened.is_mapped(probed)
    dictionary_bytes = sum(cast(Any, probed.column(name)).dictionary.nbytes for name in worded)
    del probed
    num_bytes = 0
    # The largest body, one column at a time: a compressed record batch may be large.
    largest = max(with_rows, key=lambda index: opened.batches[index].body_bytes)
    for name in schema.names if is_sampled else ():
        num_bytes += _num_bytes(opened.read_batch(largest, [name]).column(0), schema.field(name).type)
    opened.give_back_pages()
    is_cast = any(types[field.name] != field.type for field in schema)
    row_bytes = num_bytes / opened.batches[largest].num_rows
    return _Probe(is_whole, dictionary_bytes, row_bytes, 1 + _CAST_FACTOR * is_cast)


def _num_bytes(array: Any, given_type: Any) -> int:
    """Bytes of an array and of what it becomes as another type; dictionaries are counted elsewhere."""
    num_bytes = array.indices.nbytes if pa.types.is_dictionary(array.type) else array.nbytes
    return int(num_bytes) * (1 if array.type == given_type else 1 + _CAST_FACTOR)


class IpcDecoder(BlockDecoder):
    def __init__(self, scanned: ScannedIpc, share: Share) -> None:
        self._scanned = scanned
        self._share = share
        # With this for every record batch or part, any two neighbours fit.
        self._limit_bytes = (share.limit_bytes - scanned.packed_bytes) // 2
        self._lease = RollingLease(share, share.limit_bytes)
        self._opened: dict[int, OpenIpc] = {}
        for batch in scanned.batches:
            num_bytes = batch.decoded_bytes if batch.is_whole else scanned.max_row_bytes
            if batch.dictionary_bytes + num_bytes > self._limit_bytes:
                raise self._too_large(batch, batch.decoded_bytes)

    def close(self) -> None:
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        batch = self._scanned.batches[block]
        file = self._scanned.files[batch.file_index]
        read = self._whole if batch.is_whole else self._parts
        with reading_ipc(file.path):
            # One file at a time, since it holds its dictionaries.
            if batch.file_index not in self._opened:
                while self._opened:
                    self._opened.popitem()[1].close()
                self._opened[batch.file_index] = OpenIpc(file, self._scanned.messages[batch.file_index])
            yield from read(self._opened[batch.file_index], batch, first_row, end_row)

    def _whole(
        self, opened: OpenIpc, batch: IpcBatch, first_row: int, end_row: int
    ) -> Iterator[pa.RecordBatch]:
        schema = self._scanned.columns
        retained_bytes = batch.dictionary_bytes + batch.decoded_bytes
        packed_bytes = min(batch.body_bytes, self._scanned.packed_bytes)
        self._lease.move_on(packed_bytes + retained_bytes, retained_bytes)
        rows = opened.read_batch(batch.index, schema.names, is_whole=True)
        opened.give_back_pages()
        num_bytes = batch.dictionary_bytes + self._num_bytes(rows)
        if num_bytes > self._limit_bytes:  # Rows differ much in size: a scan has seen only some.
            raise self._too_large(batch, num_bytes)
        if num_bytes > retained_bytes:
            self._lease.change(packed_bytes + num_bytes, num_bytes)
        rows.validate(full=True)
        part_rows = max(1, _PART_BYTES * rows.num_rows // max(1, num_bytes))
        for first in range(first_row, end_row, part_rows):
            yield with_types(rows.slice(first, min(part_rows, end_row - first)), schema)

    def _parts(
        self, opened: OpenIpc, batch: IpcBatch, first_row: int, end_row: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows that are copied out of the map, as many at a time as fit."""
        schema, limit_bytes = self._scanned.columns, self._limit_bytes - batch.dictionary_bytes
        part_bytes = min(_PART_BYTES, limit_bytes)
        rows = opened.read_batch(batch.index, schema.names)
        while first_row < end_row:
            num_rows = min(max(1, part_bytes // self._scanned.max_row_bytes), end_row - first_row)
            num_bytes = self._num_bytes(rows.slice(first_row, num_rows))
            while num_bytes > part_bytes and num_rows > 1:
                num_rows //= 2
                num_bytes = self._num_bytes(rows.slice(first_row, num_rows))
            if num_bytes > limit_bytes:
                raise BudgetExceeded(
                    f"{self._scanned.files[batch.file_index].path}: row {batch.first_row + first_row} takes "
                    f"{format_size(num_bytes)}, and two such rows must fit, but {self._share.name} may hold "
                    f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, or shorten the row"
                )
            leased_bytes = batch.dictionary_bytes + num_bytes
            self._lease.move_on(leased_bytes, leased_bytes)
            arrays = []
            for array, field in zip(rows.columns, schema, strict=True):
                arrays.append(_copied(array.slice(first_row, num_rows), field.type))
                opened.give_back_pages()
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            first_row += num_rows

    def _num_bytes(self, rows: pa.RecordBatch) -> int:
        pairs = zip(rows.columns, self._scanned.columns, strict=True)
        return sum(_num_bytes(array, field.type) for array, field in pairs)

    def _too_large(self, batch: IpcBatch, num_bytes: int) -> BudgetExceeded:
        how, needed_bytes = "is read some rows at a time", self._scanned.sizes.min_bytes
        if batch.is_whole:
            how = "is decoded whole, beside the one before it"
            needed_bytes = self._scanned.packed_bytes + 2 * (batch.dictionary_bytes + num_bytes)
        return BudgetExceeded(
            f"{self._scanned.files[batch.file_index].path}: record batch {batch.index} has {format_size(num_bytes)} "
            f"and {how}, which needs {format_size(needed_bytes)}, but {self._share.name} may hold "
            f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, read fewer columns, or write "
            "smaller record batches (penstock rewrite)"
        )


def _copied(array: Any, given_type: Any) -> Any:
    """A copy of the rows of a slice as a type, checked: a damaged file may hold anything."""
    types = pa.types
    if types.is_map(array.type) or types.is_list(array.type) or types.is_large_list(array.type):
        return with_items(array, given_type, _copied)
    if types.is_dictionary(array.type):
        bounds: Any = pc.min_max(array.indices).as_py()
        if not 0 <= (bounds["min"] or 0) <= (bounds["max"] or 0) < max(1, len(array.dictionary)):
            raise ValueError(f"a {array.type} column points outside of its dictionary")
    else:
        array.validate(full=True)
    return pa.concat_arrays([array]) if array.type == given_type else as_type(array, given_type)
