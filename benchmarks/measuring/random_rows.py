"""Rows that no codec makes smaller: as many bytes in the files as in memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUM_NUMBERS, NUM_IDS = 13, 26
ROW_BYTES = 4 * NUM_NUMBERS + 8 * NUM_IDS


def table(num_rows: int, generator: np.random.Generator) -> pa.Table:
    """13 float32 and 26 int64, all random."""
    numbers = {f"number_{place}": generator.random(num_rows, np.float32) for place in range(NUM_NUMBERS)}
    ids = {f"id_{place}": generator.integers(0, 2**40, num_rows) for place in range(NUM_IDS)}
    return pa.table(numbers | ids)


def write_files(folder: Path, num_bytes: int, num_files: int, row_group_rows: int = 65_536) -> str:
    """A data set of so many bytes; gives the path that reads all of it."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    groups_per_file = max(1, round(num_bytes / num_files / row_group_rows / ROW_BYTES))
    for index in range(num_files):
        first = table(row_group_rows, generator)
        with pq.ParquetWriter(
            folder / f"part-{index}.parquet", first.schema, compression="none", use_dictionary=False
        ) as writer:
            writer.write_table(first, row_group_size=row_group_rows)
            for _ in range(groups_per_file - 1):
                writer.write_table(table(row_group_rows, generator), row_group_size=row_group_rows)
    return f"{folder}/*.parquet"
