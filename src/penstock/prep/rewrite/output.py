"""Rows -> Parquet files with the row groups of a layout, one row group in memory at a time."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.prep.rewrite.layout import OutputLayout
from penstock.runtime.durable import sync_path


def parquet_settings(compression: str) -> dict[str, Any]:
    """How files are written: with checksums of pages, which the reader checks, and with the types of Arrow."""
    return {"compression": compression.upper(), "write_page_checksum": True, "store_schema": True}


class OutputFiles:
    """Writes rows as they come. Used in a `with` block, at whose end all rows of the layout must have come.

    A row group is written early where its rows, larger than others, take twice the bytes that it should have: the
    order of rows is the same, the memory stays bounded.
    """

    def __init__(
        self, folder: Path, schema: pa.Schema, layout: OutputLayout, group_bytes: int, compression: str
    ) -> None:
        self.paths: list[Path] = []
        self.num_row_groups = 0
        self._folder = folder
        self._schema = schema
        self._most_group_bytes = 2 * group_bytes
        self._settings = parquet_settings(compression)
        self._files = layout.files()
        self._groups: list[int] = []
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._open_next()

    def write(self, batch: pa.RecordBatch, is_view: bool) -> None:
        """Take rows. `is_view`: others own their memory, so that what waits for more rows is copied."""
        while batch.num_rows:
            missing_rows = self._groups[0]
            piece, batch = batch.slice(0, missing_rows), batch.slice(missing_rows)
            self._groups[0] -= piece.num_rows
            is_full = not self._groups[0]
            if not is_full and is_view:
                piece = piece.take(np.arange(piece.num_rows))
            self._waiting.append(piece)
            self._waiting_bytes += piece.nbytes
            if is_full or self._waiting_bytes > self._most_group_bytes:
                self._write_group()
            if is_full:
                self._next_group()

    def _write_group(self) -> None:
        assert self._writer is not None
        table = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting.clear()
        self._waiting_bytes = 0
        self._writer.write_table(table, row_group_size=table.num_rows)
        self.num_row_groups += 1

    def _next_group(self) -> None:
        self._groups.pop(0)
        if not self._groups:
            self._close_file()
            self._open_next()

    def _open_next(self) -> None:
        """Open the next file of the layout, if there is one."""
        groups = next(self._files, None)
        if groups is None:
            return
        self._groups = groups
        self.paths.append(self._folder / f"part-{len(self.paths):05d}.parquet")
        self._writer = pq.ParquetWriter(self.paths[-1], self._schema, **self._settings)

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            sync_path(self.paths[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.clear()
        self._close_file()
