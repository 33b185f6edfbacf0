"""Criteo-like rows (13 float32 with missing values, 26 int64 ids, one label) in files of every format."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from penstock.prep.sample_data.blocks import BLOCK_ROWS
from penstock.prep.sample_data.criteo import Criteo
from penstock.readers.tfrecord_write import write_tfrecord

RUN_FILE = Path(__file__).parents[2] / "examples" / "deepfm_criteo.config"
ROW_GROUP_ROWS = 65_536


def blocks(num_rows: int, seed: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows, a block at a time."""
    kind = Criteo(seed)
    for index in range(-(-num_rows // BLOCK_ROWS)):
        yield kind.block(index).rows.slice(0, num_rows - index * BLOCK_ROWS)


def write_parquet(folder: Path, num_rows: int, num_files: int, row_group_rows: int = ROW_GROUP_ROWS) -> str:
    """Snappy files of equally many rows; gives the path that a run file would name."""
    folder.mkdir(parents=True)
    rows = blocks(num_rows)
    waiting = pa.Table.from_batches([next(rows)])
    for index in range(num_files):
        size = num_rows // num_files + (index < num_rows % num_files)
        with pq.ParquetWriter(
            folder / f"part-{index}.parquet", waiting.schema, compression="snappy"
        ) as writer:
            while size:
                while waiting.num_rows < min(size, row_group_rows):
                    waiting = pa.concat_tables([waiting, pa.Table.from_batches([next(rows)])])
                group = waiting.slice(0, min(size, row_group_rows))
                writer.write_table(group.combine_chunks(), row_group_size=row_group_rows)
                waiting = waiting.slice(group.num_rows)
                size -= group.num_rows
    return f"{folder}/*.parquet"


def write_csv(folder: Path, num_rows: int, num_files: int) -> str:
    """Files with a header; missing numbers are empty."""
    folder.mkdir(parents=True)
    table = pa.Table.from_batches(blocks(num_rows))
    size = -(-num_rows // num_files)
    for index in range(num_files):
        part = table.slice(index * size, size)
        pyarrow.csv.write_csv(part, folder / f"part-{index}.csv")
    return f"{folder}/*.csv"


def write_records(folder: Path, num_rows: int, num_files: int) -> str:
    """TFRecord files; a missing number is a feature that the record does not have."""
    folder.mkdir(parents=True)
    write_tfrecord(folder / "part.tfrecord", pa.Table.from_batches(blocks(num_rows)), files=num_files)
    return f"{folder}/*.tfrecord"
