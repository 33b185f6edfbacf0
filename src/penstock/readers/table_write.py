"""Record batches -> one Parquet or CSV file, or a folder of Parquet files: whole or absent, a row group at a time."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB
from penstock.runtime.durable import sync_path

FILE_SUFFIXES = (".parquet", ".csv")
ROWS_PER_PART = 1_000_000
ROWS_PER_GROUP = 131_072
GROUP_BYTES = 16 * MIB


def write_output(
    path: Path, batches: Iterable[pa.RecordBatch], argument: str, rows_per_part: int = ROWS_PER_PART
) -> int:
    """Write all batches to disk under a temporary name, then rename; gives the number of rows.

    A path without a suffix is a folder of part-NNNNN.parquet in the order of rows, each ended by the batch that fills
    it. Without a batch nothing appears. `argument` is what messages call the path.
    """
    require_free(path, argument)
    staging, is_one_file = path.with_name(f".{path.name}.tmp"), path.suffix in FILE_SUFFIXES
    remove(staging)  # what a stopped run left behind
    waiting: list[pa.RecordBatch] = []
    num_rows, part_rows, num_parts, writer = 0, 0, 0, None
    try:
        if not is_one_file:
            staging.mkdir()
        for batch in chain(batches, [None]):
            if batch is not None:
                waiting.append(batch)
                part_rows += batch.num_rows
            ends_part = batch is None or (not is_one_file and part_rows >= rows_per_part)
            # Small row groups cost every reader, large ones cost us memory.
            waiting_rows, waiting_bytes = sum(map(len, waiting)), sum(part.nbytes for part in waiting)
            if waiting and (ends_part or waiting_rows >= ROWS_PER_GROUP or waiting_bytes >= GROUP_BYTES):
                if writer is None:
                    part = staging if is_one_file else staging / f"part-{num_parts:05d}.parquet"
                    writer, num_parts = open_writer(part, path.suffix, waiting[0].schema), num_parts + 1
                writer.write_table(pa.Table.from_batches(waiting))
                num_rows, waiting = num_rows + waiting_rows, []
            if ends_part and writer is not None:
                writer.close()
                sync_path(part)
                writer, part_rows = None, 0
        if num_parts == 0:
            remove(staging)
            return 0
        sync_path(staging)
        os.replace(staging, path)
    except BaseException:
        if writer is not None:
            with suppress(Exception):  # on a full disk this fails too; the first error is raised
                writer.close()
        remove(staging)
        raise
    sync_path(path.parent)
    return num_rows


def require_free(path: Path, argument: str) -> None:
    """Refuse to mix new parts with old ones, to replace one kind by the other, and a folder that is not there."""
    is_one_file, problem = path.suffix in FILE_SUFFIXES, None
    if path.is_dir() and is_one_file:
        problem = f"'{path}' is a folder, but ends like one file; choose another name"
    elif path.suffix and not is_one_file and not path.is_dir():
        problem = (
            f"'{path.name}' ends in '{path.suffix}'; end it in .parquet or .csv for one file, "
            "or in neither for a folder of parts"
        )
    elif path.is_dir() and any(path.iterdir()):
        problem = f"'{path}' is not empty; choose another folder"
    elif path.is_file() and is_one_file:
        problem = f"'{path}' exists already; remove it, or choose another name"
    elif path.exists() and not path.is_dir():
        problem = f"'{path}' is a file; name a folder, or one file ending in .parquet or .csv"
    elif not path.parent.is_dir():
        problem = f"there is no folder '{path.parent}'; make it first"
    if problem is not None:
        raise ConfigError(f"{argument}: {problem}")


def open_writer(path: Path, suffix: str, schema: pa.Schema) -> "pq.ParquetWriter | pyarrow.csv.CSVWriter":
    if suffix != ".csv":
        return pq.ParquetWriter(path, schema)
    if nested := [field.name for field in schema if pa.types.is_nested(field.type)]:
        problem = "holds lists, which CSV cannot; write a .parquet file instead"
        raise ConfigError(f"column '{nested[0]}' {problem}")
    return pyarrow.csv.CSVWriter(path, schema)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
