"""How large a row of Parquet files is in memory, from a look at a few row groups."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.sizes import MIB
from penstock.readers.files import DataFile
from penstock.readers.origin import ROW_FIELD
from penstock.readers.parquet.layout import Layout, RowGroup, open_file, reading_file
from penstock.readers.parquet.texts import written_out_ends
from penstock.readers.uris import is_uri

_MOST_BLOCKS = 8
_MOST_STORE_BLOCKS = 2
_MOST_FETCHED_BYTES = 32 * MIB
"""In a store each look is a request: fewer row groups, and those whole, as stored."""
_MOST_WHOLE_BYTES = 8 * MIB
_MOST_ROWS = 1024
_MOST_COLUMNS = 8
"""Decoded together: the pages of all columns of a wide table would take more than the rows."""


def sampled_row_bytes(files: Sequence[DataFile], layout: Layout) -> int:
    """Bytes of a row as it is given out: the mean over row groups from all over the data.

    Of a small row group all rows are looked at, of a large one the first; texts stay in their dictionaries.
    """
    most_blocks = _MOST_STORE_BLOCKS if any(is_uri(file.path) for file in files) else _MOST_BLOCKS
    places = np.linspace(0, len(layout.blocks) - 1, min(len(layout.blocks), most_blocks), dtype=int)
    num_bytes = num_rows = 0
    for block in (layout.blocks[place] for place in places):
        file = files[block.file_index]
        with open_file(file, layout.texts[block.file_index].coded) as opened, reading_file(file):
            is_small = block.decoded_bytes <= _MOST_WHOLE_BYTES
            sampled_rows = block.num_rows if is_small else min(block.num_rows, _MOST_ROWS)
            is_fetched = block.stored_bytes <= _MOST_FETCHED_BYTES
            with opened.holding_row_group(block.index, layout.schema.names if is_fetched else ()):
                block_bytes = _bytes_of(opened, block, layout, sampled_rows)
            num_bytes += block_bytes * block.num_rows // sampled_rows
            num_rows += block.num_rows
    return max(1, -(-num_bytes // num_rows)) if num_rows else 1


def _bytes_of(opened: pq.ParquetFile, block: RowGroup, layout: Layout, num_rows: int) -> int:
    names = layout.schema.names
    total_bytes = num_rows * ROW_FIELD.type.bit_width // 8
    for start in range(0, len(names), _MOST_COLUMNS):
        group = names[start : start + _MOST_COLUMNS]
        batches = opened.iter_batches(num_rows, row_groups=[block.index], columns=group, use_threads=False)
        batch = next(batches).select(group)
        schema = pa.schema([layout.schema.field(name) for name in group])
        as_they_are = [
            array.nbytes
            for array, field in zip(batch.columns, schema, strict=True)
            if array.type == field.type
        ]
        total_bytes += sum(as_they_are) + int(written_out_ends(batch, schema)[-1])
    return total_bytes
