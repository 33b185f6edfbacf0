"""How much room rows take, in memory, in temporary files and in the output: measured on rows from all over the data."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.prep.rewrite.buckets import TEMPORARY_OPTIONS
from penstock.prep.rewrite.options import RewriteOptions
from penstock.prep.rewrite.output import parquet_settings
from penstock.readers.survey import Survey
from penstock.runtime.budget import Share

_MOST_BLOCKS = 16
_MOST_ROWS = 1 << 15
KEY_BYTES = 8


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of all rows, as far as a sample tells."""

    temporary_bytes: int
    output_bytes: int


def estimate(survey: Survey, share: Share, options: RewriteOptions) -> Estimate:
    """Write a sample of the rows to memory, in the forms they will have on disk."""
    batches = list(_sample(survey, share))
    num_rows = sum(batch.num_rows for batch in batches)
    if not num_rows:
        return Estimate(0, 0)
    rows = pa.Table.from_batches(batches, survey.columns)
    if options.shuffle:
        # Rows out of order compress less.
        rows = rows.combine_chunks().take(np.random.default_rng(0).permutation(num_rows))
    output_bytes = _parquet_bytes(rows, options) * survey.num_rows // num_rows
    if not options.shuffle:
        return Estimate(0, output_bytes)
    temporary_bytes = (_stream_bytes(rows) + num_rows * KEY_BYTES) * survey.num_rows // num_rows
    return Estimate(temporary_bytes, output_bytes)


def _sample(survey: Survey, share: Share) -> Iterator[pa.RecordBatch]:
    """The first rows of a few blocks, copied, so that a block need not stay in memory for them."""
    blocks = survey.blocks
    places = np.unique(np.linspace(0, len(blocks) - 1, min(len(blocks), _MOST_BLOCKS), dtype=int))
    most_rows = min(_MOST_ROWS, share.limit_bytes // 4 // survey.row_bytes) // max(1, len(places)) + 1
    decoder = survey.decoder(share)
    try:
        for block in places.tolist():
            for batch in decoder.batches(block, 0, min(int(blocks.num_rows[block]), most_rows)):
                yield batch.take(np.arange(batch.num_rows))
    finally:
        decoder.close()


def _parquet_bytes(rows: pa.Table, options: RewriteOptions) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **parquet_settings(options.compression))
    return sink.getvalue().size


def _stream_bytes(rows: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=TEMPORARY_OPTIONS) as stream:
        stream.write_table(rows)
    return sink.getvalue().size
