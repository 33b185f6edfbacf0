"""Where predictions go: one Parquet or CSV file, or a folder of Parquet parts; whole, or not there."""

import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB

FILE_SUFFIXES = (".parquet", ".csv")
ROWS_PER_PART = 1_000_000
ROWS_PER_GROUP = 131_072
GROUP_BYTES = 16 * MIB


class Writer(Protocol):
    """What takes record batches and ends with `close`."""

    def write_table(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


def write_output(path: Path, batches: Iterable[pa.RecordBatch], rows_per_part: int = ROWS_PER_PART) -> int:
    """Write all batches under a temporary name, then rename; gives the number of rows."""
    require_free(path)
    staging = path.with_name(f".{path.name}.tmp")
    remove(staging)
    try:
        if path.suffix in FILE_SUFFIXES:
            num_rows = write_file(staging, path.suffix, batches)
        else:
            num_rows = write_parts(staging, batches, rows_per_part)
        os.replace(staging, path)
    except BaseException:
        remove(staging)
        raise
    return num_rows


def require_free(path: Path) -> None:
    """Refuse to mix new parts with old ones, to replace one kind by the other, and a folder that is not there."""
    is_one_file = path.suffix in FILE_SUFFIXES
    if path.is_dir() and is_one_file:
        raise ConfigError(
            f"--predict_output_path: '{path}' is a folder, but ends like one file; choose another name"
        )
    if path.suffix and not is_one_file and not path.is_dir():
        raise ConfigError(
            f"--predict_output_path: '{path.name}' ends in '{path.suffix}'; end it in .parquet or .csv for one file, "
            "or in neither for a folder of parts"
        )
    if path.is_dir() and any(path.iterdir()):
        raise ConfigError(f"--predict_output_path: '{path}' is not empty; choose another folder")
    if path.is_file() and is_one_file:
        raise ConfigError(
            f"--predict_output_path: '{path}' exists already; remove it, or choose another name"
        )
    if path.exists() and not path.is_dir() and not is_one_file:
        raise ConfigError(
            f"--predict_output_path: '{path}' is a file; name a folder, or one file ending in .parquet or .csv"
        )
    if not path.parent.is_dir():
        raise ConfigError(f"--predict_output_path: there is no folder '{path.parent}'; make it first")


def write_file(path: Path, suffix: str, batches: Iterable[pa.RecordBatch]) -> int:
    """One file of all batches."""
    writer: Writer | None = None
    num_rows = 0
    try:
        for table in row_groups(batches):
            writer = writer or open_writer(path, suffix, table.schema)
            writer.write_table(table)
            num_rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise ConfigError("--predict_input_path: there are no rows to score")
    return num_rows


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined to row groups of a good size: small ones cost every reader, large ones cost us memory."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if (
            sum(part.num_rows for part in waiting) >= ROWS_PER_GROUP
            or sum(part.nbytes for part in waiting) >= GROUP_BYTES
        ):
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def open_writer(path: Path, suffix: str, schema: pa.Schema) -> Writer:
    """The writer of one file."""
    if suffix == ".csv":
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        if nested:
            raise ConfigError(
                f"column '{nested[0]}' holds lists, which CSV cannot; write a .parquet file instead"
            )
        return pyarrow.csv.CSVWriter(path, schema)
    return pq.ParquetWriter(path, schema)


def write_parts(folder: Path, batches: Iterable[pa.RecordBatch], rows_per_part: int) -> int:
    """A folder of part-NNNNN.parquet, in input order."""
    folder.mkdir()
    num_rows = 0
    source = iter(batches)
    for index in count():
        first = next(source, None)
        if first is None:
            break
        part = one_part(first, source, rows_per_part)
        num_rows += write_file(folder / f"part-{index:05d}.parquet", ".parquet", part)
    if num_rows == 0:
        raise ConfigError("--predict_input_path: there are no rows to score")
    return num_rows


def one_part(
    first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], rows_per_part: int
) -> Iterator[pa.RecordBatch]:
    """Batches until the part is full; the rest stays in the iterator."""
    yield first
    num_rows = first.num_rows
    while num_rows < rows_per_part:
        batch = next(rest, None)
        if batch is None:
            return
        yield batch
        num_rows += batch.num_rows


def remove(path: Path) -> None:
    """What a stopped run left behind."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
