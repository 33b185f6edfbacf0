"""Arrow IPC files: the file format (also called Feather version 2) and the stream format. Blocks are record batches.

A local file is mapped, and rows are copied out of the map one column at a time. The pages of a column are given back
after each copy: mapped pages count as memory of the process, and the kernel maps up to 2 MiB for a single value.
So any number of rows of a large record batch can be read alone. A compressed record batch, and one in an object
store, is decoded whole, and two of them must fit the share: one in use and the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.arrow_files import ROWS, Message, OpenIpc, reading_ipc
from penstock.readers.blocks import Blocks
from penstock.readers.columns import as_type, join_schemas, project, with_types
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint, ends_checksum, fingerprint
from penstock.readers.leasing import RollingLease
from penstock.readers.origin import ROW_FIELD
from penstock.readers.scan import BlockDecoder, ReadRequest, ScannedFiles
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share

_PART_BYTES, _MIN_PART_BYTES = 8 * MIB, 64 * KIB
"""What rows that are given out together take, where the share allows it, and where it does not."""
_CAST_FACTOR = 4
"""A column that is given out as another type takes up to so many times its size besides: int8 becomes int32."""
_SLACK_BYTES = 16 * KIB
"""Rows of small record batches differ more from those that were sampled."""
_SAMPLED_FILES = 8


@dataclass(frozen=True, slots=True)
class IpcBatch:
    """A record batch that has rows: a block."""

    file_index: int
    index: int
    """Its number in the file."""
    first_row: int
    num_rows: int
    body_bytes: int
    is_whole: bool
    """Whether it can only be decoded whole."""
    decoded_bytes: int
    """About what it takes in memory; of one that is not decoded whole at most."""
    dictionary_bytes: int
    """What the dictionaries of the wanted columns take."""


@dataclass(frozen=True)
class ScannedIpc(ScannedFiles):
    """What the headers of all messages and a few record batches show."""

    files: tuple[DataFile, ...]
    fingerprints: tuple[Fingerprint, ...]
    schema: pa.Schema
    messages: tuple[list[Message], ...]
    """Of each file."""
    batches: tuple[IpcBatch, ...]
    mean_row_bytes: int
    max_row_bytes: int

    @property
    def columns(self) -> pa.Schema:
        return self.schema

    @cached_property
    def blocks(self) -> Blocks:
        return Blocks.of((batch.file_index, batch.first_row, batch.num_rows) for batch in self.batches)

    @property
    def row_bytes(self) -> int:
        return self.mean_row_bytes + ROW_FIELD.type.bit_width // 8

    @cached_property
    def packed_bytes(self) -> int:
        """What the largest record batch takes as stored, while it is decoded whole."""
        whole = [batch for batch in self.batches if batch.is_whole]
        return max((min(batch.body_bytes, batch.decoded_bytes) for batch in whole), default=0)

    def _share_bytes(self, part_bytes: int) -> int:
        """The share in which any two neighbours fit: record batches, or parts of at most so many bytes."""
        sizes = [1]
        for batch in self.batches:
            if batch.is_whole:
                num_bytes = batch.decoded_bytes + min(_SLACK_BYTES, batch.decoded_bytes)
            else:
                num_bytes = max(self.max_row_bytes, min(part_bytes, batch.decoded_bytes))
            sizes.append(batch.dictionary_bytes + num_bytes)
        return self.packed_bytes + 2 * max(sizes)

    @cached_property
    def min_bytes(self) -> int:
        return self._share_bytes(_MIN_PART_BYTES)

    @cached_property
    def ample_bytes(self) -> int:
        return self._share_bytes(_PART_BYTES)

    @cached_property
    def block_bytes(self) -> int:
        sizes = [
            batch.decoded_bytes if batch.is_whole else min(_PART_BYTES, batch.decoded_bytes)
            for batch in self.batches
        ]
        return max([1, *sizes])

    def decoder(self, share: Share) -> BlockDecoder:
        return IpcDecoder(self, share)


def scan_ipc(
    reading: ReadingSection,  # noqa: ARG001 - every format is scanned alike
    files: Sequence[DataFile],
    wanted: ReadRequest,
) -> ScannedFiles:
    """Read the headers of all messages, and a record batch of a few files."""
    columns, schema, first_path = wanted.columns, None, files[0].path
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
                first_path = file.path if schema is None else first_path
                schema = join_schemas(schema, first_path, projected, file.path)
                columns = schema.names
            probe = _Probe()
            if num_rows and schema is not None:
                probe = _probe(opened, schema, is_sampled=index % sampled_every == 0)
            probes.append(probe)
            messages.append(opened.messages)
            opened.close()
        marks.append(fingerprint(file, num_rows, ends_checksum(file)))
    if schema is None:
        raise DataError("no Arrow files are given")
    sampled = [probe.row_bytes for probe in probes if probe.row_bytes] or [1.0]
    mean_bytes, max_bytes = -int(-np.mean(sampled) // 1), -int(-max(sampled) // 1)
    batches: list[IpcBatch] = []
    for file_index, (found, probe) in enumerate(zip(messages, probes, strict=True)):
        first_row = 0
        for index, message in enumerate(message for message in found if message.kind == ROWS):
            is_whole, num_rows, body_bytes = probe.is_whole, message.num_rows, message.body_bytes
            decoded_bytes = num_rows * max_bytes if is_whole else probe.cast_factor * body_bytes
            sizes = (num_rows, body_bytes, is_whole, decoded_bytes, probe.dictionary_bytes)
            if num_rows:
                batches.append(IpcBatch(file_index, index, first_row, *sizes))
            first_row += num_rows
    sizes_of_rows = max(1, mean_bytes), max(1, max_bytes)
    return ScannedIpc(tuple(files), tuple(marks), schema, tuple(messages), tuple(batches), *sizes_of_rows)


class _Probe(NamedTuple):
    """What record batches of a file show."""

    is_whole: bool = False
    dictionary_bytes: int = 0
    row_bytes: float = 0.0
    """Where all columns were looked at."""
    cast_factor: int = 1


def _probe(opened: OpenIpc, schema: pa.Schema, is_sampled: bool) -> _Probe:
    with_rows = [index for index, message in enumerate(opened.batches) if message.num_rows]
    types = {name: opened.schema.field(name).type for name in schema.names}
    worded = [name for name in schema.names if pa.types.is_dictionary(types[name])]
    narrowest = min(
        schema.names, key=lambda name: (not pa.types.is_primitive(types[name]), len(str(types[name])))
    )
    # In a stream dictionaries grow, so the last record batch is looked at.
    probed = opened.read_batch(with_rows[-1], list(dict.fromkeys([narrowest, *worded])))
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
    """The open file, and the bytes of the rows in work and of those before."""

    def __init__(self, scanned: ScannedIpc, share: Share) -> None:
        self._scanned = scanned
        self._share = share
        # With this for every record batch or part, any two neighbours fit.
        self._limit_bytes = (share.limit_bytes - scanned.packed_bytes) // 2
        self._lease = RollingLease(share)
        self._opened: tuple[int, OpenIpc] | None = None
        for batch in scanned.batches:
            num_bytes = batch.decoded_bytes if batch.is_whole else scanned.max_row_bytes
            if batch.dictionary_bytes + num_bytes > self._limit_bytes:
                raise self._too_large(batch, batch.decoded_bytes)

    def close(self) -> None:
        self._lease.close()
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        batch = self._scanned.batches[block]
        with reading_ipc(self._scanned.files[batch.file_index].path):
            yield from (self._whole if batch.is_whole else self._parts)(batch, first_row, end_row)

    def _whole(self, batch: IpcBatch, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Views of a record batch that is decoded whole."""
        retained_bytes = batch.dictionary_bytes + batch.decoded_bytes
        packed_bytes = min(batch.body_bytes, self._scanned.packed_bytes)
        self._lease.move_on(packed_bytes + retained_bytes, retained_bytes)
        opened = self._open(batch.file_index)
        rows = opened.read_batch(batch.index, self._scanned.schema.names, is_whole=True)
        opened.give_back_pages()
        num_bytes = batch.dictionary_bytes + self._num_bytes(rows)
        if num_bytes > retained_bytes:
            # A file whose rows differ much in size: a scan has seen only some.
            if num_bytes > self._limit_bytes:
                raise self._too_large(batch, num_bytes)
            self._lease.change(packed_bytes + num_bytes, num_bytes)
        rows.validate(full=True)
        part_rows = max(1, _PART_BYTES * rows.num_rows // max(1, num_bytes))
        for first in range(first_row, end_row, part_rows):
            part = rows.slice(first, min(part_rows, end_row - first))
            yield with_types(part, self._scanned.schema)

    def _parts(self, batch: IpcBatch, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows that are copied out of the map, as many at a time as fit."""
        scanned = self._scanned
        limit_bytes = self._limit_bytes - batch.dictionary_bytes
        part_bytes = min(_PART_BYTES, limit_bytes)
        opened = self._open(batch.file_index)
        rows = opened.read_batch(batch.index, scanned.schema.names)
        part_rows = max(1, part_bytes // scanned.max_row_bytes)
        while first_row < end_row:
            num_rows = min(part_rows, end_row - first_row)
            while (
                num_bytes := self._num_bytes(rows.slice(first_row, num_rows))
            ) > part_bytes and num_rows > 1:
                num_rows //= 2
            if num_bytes > limit_bytes:
                raise BudgetExceeded(
                    f"{scanned.files[batch.file_index].path}: row {batch.first_row + first_row} takes "
                    f"{format_size(num_bytes)}, and two such rows must fit, but {self._share.name} may hold "
                    f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, or shorten the row"
                )
            leased_bytes = batch.dictionary_bytes + num_bytes
            self._lease.move_on(leased_bytes, leased_bytes)
            arrays = []
            for array, field in zip(rows.columns, scanned.schema, strict=True):
                arrays.append(_copied(array.slice(first_row, num_rows), field.type))
                opened.give_back_pages()
            yield pa.RecordBatch.from_arrays(arrays, schema=scanned.schema)
            first_row += num_rows

    def _num_bytes(self, rows: pa.RecordBatch) -> int:
        pairs = zip(rows.columns, self._scanned.schema, strict=True)
        return sum(_num_bytes(array, field.type) for array, field in pairs)

    def _open(self, file_index: int) -> OpenIpc:
        """One file at a time, since it holds its dictionaries."""
        if self._opened is None or self._opened[0] != file_index:
            if self._opened is not None:
                self._opened[1].close()
                self._opened = None
            opened = OpenIpc(self._scanned.files[file_index], self._scanned.messages[file_index])
            self._opened = file_index, opened
        return self._opened[1]

    def _too_large(self, batch: IpcBatch, num_bytes: int) -> BudgetExceeded:
        how, needed_bytes = "is read some rows at a time", self._scanned.min_bytes
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
    """A copy of the rows of a slice as a type, checked: offsets of a damaged file point anywhere."""
    types = pa.types
    is_map = types.is_map(array.type)
    if is_map or types.is_list(array.type) or types.is_large_list(array.type):
        offsets = array.offsets.to_numpy()
        first, num_items = int(offsets[0]), int(offsets[-1]) - int(offsets[0])
        items = [array.keys, array.items] if is_map else [array.values]
        if first < 0 or first + num_items > len(items[0]) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError(f"offsets of a {array.type} column go backwards")
        item_types = [given_type.key_type, given_type.item_type] if is_map else [given_type.value_type]
        list_class: Any = pa.ListArray if types.is_list(array.type) else pa.LargeListArray
        return (pa.MapArray if is_map else list_class).from_arrays(
            pa.array(offsets - np.asarray(first, offsets.dtype)),
            *(_copied(part.slice(first, num_items), of) for part, of in zip(items, item_types, strict=True)),
            type=given_type,
            mask=array.is_null() if array.null_count else None,
        )
    if types.is_dictionary(array.type):
        bounds: Any = pc.min_max(array.indices).as_py()
        if not 0 <= (bounds["min"] or 0) <= (bounds["max"] or 0) < max(1, len(array.dictionary)):
            raise ValueError(f"a {array.type} column points outside of its dictionary")
    else:
        array.validate(full=True)
    return pa.concat_arrays([array]) if array.type == given_type else as_type(array, given_type)
