"""Texts of which some stand in a dictionary and some as they are: how large they may be at most."""

from collections.abc import Sequence

import pyarrow.parquet as pq

from penstock.readers.files import DataFile
from penstock.readers.parquet.layout import RowGroup, open_file
from penstock.readers.parquet.texts import longest_text_bytes

_PEEKED_ROWS = 64
_OFFSET_BYTES = 4


def worst_text_bytes(
    file: DataFile, metadata: pq.FileMetaData, block: RowGroup, mixed_texts: Sequence[str]
) -> int:
    """Bytes of these columns of a row group, were every text as long as the longest of its dictionary."""
    group = metadata.row_group(block.index)
    worst_bytes = 0
    with open_file(file, mixed_texts) as opened:
        for leaf in range(metadata.num_columns):
            path = metadata.schema.column(leaf).path
            if path in mixed_texts and group.column(leaf).has_dictionary_page:
                chunk = group.column(leaf)
                longest_bytes = _longest_bytes(opened, block, path) + _OFFSET_BYTES
                worst_bytes += chunk.num_values * longest_bytes + chunk.total_uncompressed_size
    return worst_bytes


def _longest_bytes(opened: pq.ParquetFile, block: RowGroup, path: str) -> int:
    """Arrow hands out the dictionary with the first value: rows before it are null or empty."""
    longest_bytes: int | None = None
    for batch in opened.iter_batches(
        _PEEKED_ROWS, row_groups=[block.index], columns=[path], use_threads=False
    ):
        longest_bytes = longest_text_bytes(batch.column(0))
        if longest_bytes is not None:
            break
    return longest_bytes or 0
