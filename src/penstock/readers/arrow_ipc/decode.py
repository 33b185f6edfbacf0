"""Record batches -> batches of the wanted rows, as many at a time as fit the share."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import format_size
from penstock.readers.arrow_ipc.body import Body
from penstock.readers.arrow_ipc.dictionaries import Dictionaries
from penstock.readers.arrow_ipc.layout import IpcBatch, IpcFile, IpcLayout, cast_factor, reading_ipc
from penstock.readers.arrow_ipc.plan import PART_BYTES, Needs, check_fits, kept_bytes
from penstock.readers.arrow_ipc.rows import RowReader
from penstock.readers.casting import as_type
from penstock.readers.leasing import RollingLease
from penstock.readers.storage import open_input
from penstock.readers.survey import BlockDecoder
from penstock.runtime.budget import Share

_ROOM = 8
"""One of so many parts of what rows may take is left for those that take more than the mean."""


class OpenedFile:
    """A file, its dictionaries, and the columns of one record batch at a time."""

    def __init__(self, file: IpcFile, schema: pa.Schema) -> None:
        self._file = file
        self._schema = schema
        self._source = open_input(file.file.path)
        self._dictionaries = Dictionaries(self._source, file.messages)

    def columns(self, batch: IpcBatch) -> "BatchColumns":
        """The wanted columns of a record batch."""
        return BatchColumns(self._file, batch, self._schema, self._source, self._dictionaries)

    def close(self) -> None:
        """Close the file."""
        self._source.close()


class BatchColumns:
    """The wanted columns of one record batch."""

    def __init__(
        self,
        file: IpcFile,
        batch: IpcBatch,
        schema: pa.Schema,
        source: pa.NativeFile,
        dictionaries: Dictionaries,
    ) -> None:
        self._schema = schema
        self._stored = file.stored(batch.message, schema.names)
        words = partial(dictionaries.words, batch=batch.message)
        self._reader = RowReader(Body(source, batch.message), batch.message, words)

    def rows(self, first_row: int, end_row: int) -> pa.RecordBatch:
        """Some rows, with the types that are given out."""
        arrays = [
            as_type(self._reader.rows(stored, first_row, end_row), field.type)
            for stored, field in zip(self._stored, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def num_bytes(self, first_row: int, end_row: int) -> int:
        """What these rows take while they are read."""
        return sum(
            self._reader.num_bytes(stored, first_row, end_row) * (1 + cast_factor(stored.type, field.type))
            for stored, field in zip(self._stored, self._schema, strict=True)
        )


class IpcDecoder(BlockDecoder):
    """The open file, and the bytes of the rows in work and of those before."""

    def __init__(self, layout: IpcLayout, share: Share) -> None:
        needs = Needs.of(layout)
        check_fits(layout, needs, share)
        self._layout = layout
        self._share = share
        most_part_bytes = needs.most_part_bytes(share.limit_bytes)
        self._part_bytes = min(PART_BYTES, most_part_bytes)
        self._lease = RollingLease(share, share.limit_bytes - most_part_bytes - needs.dictionary_bytes)
        self._opened: tuple[int, OpenedFile] | None = None

    def close(self) -> None:
        """Close the file and give all bytes back; a second time does nothing."""
        self._lease.close()
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a record batch."""
        batch = self._layout.batches[block]
        rows = self._whole if batch.is_compressed else self._parts
        with reading_ipc(self._layout.files[batch.file_index].file.path):
            yield from rows(batch, first_row, end_row)

    def _parts(self, batch: IpcBatch, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows read where they lie, and measured before."""
        part_bytes = min(self._part_bytes, batch.decoded_bytes)
        leased_bytes = part_bytes + self._layout.files[batch.file_index].dictionary_bytes
        part_rows = _part_rows(batch, part_bytes)
        columns = None
        while first_row < end_row:
            self._lease.move_on(leased_bytes, retained_bytes=leased_bytes)
            columns = columns or self._open(batch.file_index).columns(batch)
            part_end = self._fitting_end(
                columns, batch, first_row, min(first_row + part_rows, end_row), part_bytes
            )
            yield columns.rows(first_row, part_end)
            first_row = part_end

    def _fitting_end(
        self, columns: BatchColumns, batch: IpcBatch, first_row: int, end_row: int, part_bytes: int
    ) -> int:
        """Up to which row they take what is leased; a single row that takes more makes the lease grow."""
        num_bytes = columns.num_bytes(first_row, end_row)
        while num_bytes > part_bytes and end_row - first_row > 1:
            end_row = first_row + (end_row - first_row) // 2
            num_bytes = columns.num_bytes(first_row, end_row)
        extra_bytes = num_bytes - part_bytes
        if extra_bytes > 0 and not self._lease.grow(extra_bytes, extra_bytes):
            raise BudgetExceeded(
                f"{self._layout.files[batch.file_index].file.path}: row {batch.first_row + first_row} takes "
                f"{format_size(num_bytes)}, and two such rows must fit, but {self._share.name} may hold "
                f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, or shorten the row"
            )
        return end_row

    def _whole(self, batch: IpcBatch, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Views of the record batch, which is unpacked whole."""
        retained_bytes = kept_bytes(self._layout, batch)
        self._lease.move_on(batch.packed_bytes + retained_bytes, retained_bytes)
        columns = self._open(batch.file_index).columns(batch)
        part_rows = max(1, PART_BYTES // batch.row_bytes)
        for first in range(first_row, end_row, part_rows):
            yield columns.rows(first, min(first + part_rows, end_row))

    def _open(self, file_index: int) -> OpenedFile:
        """The file; one at a time, since it holds its dictionaries."""
        if self._opened is None or self._opened[0] != file_index:
            if self._opened is not None:
                self._opened[1].close()
            self._opened = file_index, OpenedFile(self._layout.files[file_index], self._layout.schema)
        return self._opened[1]


def _part_rows(batch: IpcBatch, part_bytes: int) -> int:
    """How many rows are tried at once: all, or equal parts with some room for rows above the mean."""
    if batch.decoded_bytes <= part_bytes:
        return batch.num_rows
    num_parts = -(-batch.decoded_bytes * _ROOM // max(1, part_bytes * (_ROOM - 1)))
    return max(1, batch.num_rows // num_parts)
