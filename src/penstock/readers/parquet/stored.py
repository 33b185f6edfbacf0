"""An open Parquet file, the bytes that it is read from, and where in them the wanted columns lie."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.readers.parquet.pages import chunk_start, has_unknown_dictionary
from penstock.readers.storage import StoreFile, hold

_HEADER_BYTES = 512
"""Enough for nearly every header of a page."""


class OpenParquet(pq.ParquetFile):
    """A Parquet file that closes what it is read from, and offers it for a look at pages."""

    def __init__(self, source: pa.NativeFile, **options: Any) -> None:
        self.source = source
        super().__init__(source, **options)

    def close(self, force: bool = True) -> None:
        """Close the bytes too."""
        super().close(force)

    @property
    def is_remote(self) -> bool:
        """Whether each read may be a request to a store."""
        return isinstance(self.source, StoreFile)

    def hold_dictionary_headers(self, columns: Sequence[str]) -> None:
        """Fetch what a survey looks at, all at once; a local file has it at hand."""
        groups = range(self.metadata.num_row_groups)
        chunks = [chunk for group in groups for chunk in self._chunks(group, columns)]
        hold(
            self.source,
            [(chunk_start(chunk), _HEADER_BYTES) for chunk in chunks if has_unknown_dictionary(chunk)],
        )

    @contextmanager
    def holding_row_group(self, row_group: int, columns: Sequence[str]) -> Iterator[None]:
        """Have the wanted columns of a row group in memory, as stored; a local file has them at hand."""
        chunks = self._chunks(row_group, columns)
        hold(self.source, [(chunk_start(chunk), chunk.total_compressed_size) for chunk in chunks])
        try:
            yield
        finally:
            hold(self.source, [])

    def _chunks(self, row_group: int, columns: Sequence[str]) -> Iterator[pq.ColumnChunkMetaData]:
        group = self.metadata.row_group(row_group)
        return (group.column(leaf) for leaf, _ in leaves(self.metadata, columns))


def leaves(metadata: pq.FileMetaData, columns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The physical columns of the wanted ones: a list of lists or a map has several levels."""
    wanted = frozenset(columns)
    for leaf in range(metadata.num_columns):
        path = metadata.schema.column(leaf).path
        name = path if path in wanted else path.partition(".")[0]
        if name in wanted:
            yield leaf, name
