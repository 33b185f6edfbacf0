"""Ranges of rows -> record batches of the wanted columns, in requests that fit the reader's share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.readers.blocks import Blocks
from penstock.readers.columns import as_type
from penstock.readers.leasing import RollingLease
from penstock.readers.odps.paths import TablePath
from penstock.readers.odps.ranges import TableRows
from penstock.readers.odps.service import Service
from penstock.readers.survey import BlockDecoder
from penstock.runtime.budget import Share

COPIES = 3
"""Of the rows that come at once: as received, as they are given out, and the ones before, still in use."""
MOST_REQUEST_BYTES = 16 * MIB
"""Larger requests are no faster."""
SLACK = 2
"""A request is so many times smaller than what it may take: rows may be larger than those seen before."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """One table or partition."""

    path: TablePath
    num_rows: int


class TableDecoder:
    """Rows of one table as the columns that are wanted."""

    def __init__(self, service: Service, table: TableLayout, schema: pa.Schema) -> None:
        self._schema = schema
        self._rows = TableRows(service, table.path, table.num_rows)
        self._keys = table.path.keys
        self._stored = [name for name in schema.names if name not in self._keys]

    def batches(self, first_row: int, num_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows, in batches as the service cuts them."""
        for batch in self._rows.batches(first_row, num_rows, self._stored):
            arrays = [as_type(self._column(batch, field.name), field.type) for field in self._schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, batch: pa.RecordBatch, name: str) -> Any:
        """A column; those that the partition is named by are not stored."""
        if name in self._keys:
            return pa.repeat(pa.scalar(self._keys[name]), batch.num_rows)
        return batch.column(name)


class OdpsDecoder(BlockDecoder):
    """Blocks, in requests of as many rows as the share holds."""

    def __init__(
        self, tables: Sequence[TableLayout], blocks: Blocks, schema: pa.Schema, row_bytes: int, share: Share
    ) -> None:
        self._tables = tables
        self._blocks = blocks
        self._schema = schema
        self._row_bytes = row_bytes
        self._share = share
        self._lease = RollingLease(share)
        self._request_bytes = min(MOST_REQUEST_BYTES, share.limit_bytes // COPIES)
        self._service = Service()
        self._decoders: dict[int, TableDecoder] = {}

    def close(self) -> None:
        """Give all bytes back; a second time does nothing."""
        self._lease.close()
        self._decoders.clear()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a block."""
        file_index, start = int(self._blocks.file_index[block]), int(self._blocks.first_row[block])
        decoder = self._decoder(file_index)
        while first_row < end_row:
            num_rows = min(self._fitting_rows, end_row - first_row)
            self._lease.move_on((COPIES - 1) * self._request_bytes, self._request_bytes)
            for batch in decoder.batches(start + first_row, num_rows):
                self._check_size(batch, self._tables[file_index].path)
                yield batch
            first_row += num_rows

    @property
    def _fitting_rows(self) -> int:
        return max(1, self._request_bytes // (SLACK * self._row_bytes))

    def _check_size(self, batch: pa.RecordBatch, path: TablePath) -> None:
        """Ask for fewer rows from now on where they are larger than those before."""
        if batch.nbytes > self._request_bytes:
            raise BudgetExceeded(
                f"{path}: {batch.num_rows} rows take {format_size(batch.nbytes)}, and {COPIES} times that while they "
                f"are handed on, but {self._share.name} may hold {format_size(self._share.limit_bytes)}; raise "
                f"{self._share.setting}"
            )
        self._row_bytes = max(self._row_bytes, batch.nbytes // batch.num_rows)

    def _decoder(self, file_index: int) -> TableDecoder:
        if file_index not in self._decoders:
            self._decoders[file_index] = TableDecoder(self._service, self._tables[file_index], self._schema)
        return self._decoders[file_index]
