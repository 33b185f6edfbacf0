"""Small data files, and what a stream gives, for the tests of readers and stages."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from penstock.config.sizes import MIB
from penstock.readers.files import list_files
from penstock.readers.order import Shard
from penstock.readers.scan import ONE_SHARD, BlockStream, ReadRequest, ScannedFiles, scan_files
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import ROW_COLUMN, RecordStream
from penstock.readers.tfrecord_write import write_tfrecord
from penstock.runtime.budget import Share

CSV_WITH_HEADER = ReadingSection(with_header=True)


def table_of(start: int, stop: int) -> pa.Table:
    """Rows that one can tell apart: a number, its text, and a list."""
    numbers = list(range(start, stop))
    return pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "text": pa.array([f"row {number}" for number in numbers], pa.string()),
            "list": pa.array([[number] * (number % 3) for number in numbers], pa.list_(pa.int64())),
        }
    )


def write_parts(
    folder: Path, rows_per_file: Sequence[int], suffix: str, write: Callable[[pa.Table, Path], object]
) -> Path:
    start = 0
    for index, num_rows in enumerate(rows_per_file):
        write(table_of(start, start + num_rows), folder / f"part-{index:03}{suffix}")
        start += num_rows
    return folder


def write_parquet(
    folder: Path, rows_per_file: Sequence[int], row_group_size: int = 4, text: str | None = None
) -> Path:
    """With a text, it stands in every row."""

    def write(table: pa.Table, path: Path) -> None:
        if text is not None:
            table = table.set_column(1, "text", pa.array([text] * table.num_rows, pa.string()))
        pq.write_table(table, path, row_group_size=row_group_size)

    return write_parts(folder, rows_per_file, ".parquet", write)


def write_csv(folder: Path, rows_per_file: Sequence[int]) -> Path:
    """Without lists, with a header."""
    return write_parts(
        folder,
        rows_per_file,
        ".csv",
        lambda table, path: pyarrow.csv.write_csv(table.drop_columns("list"), path),
    )


def write_tfrecords(folder: Path, rows_per_file: Sequence[int], suffix: str = ".tfrecord") -> Path:
    """A file without rows has no bytes."""
    return write_parts(folder, rows_per_file, suffix, lambda table, path: write_tfrecord(path, table))


def open_path(
    path: Path | str,
    reading: ReadingSection | None = None,
    columns: Sequence[str] | None = None,
    share_bytes: int = MIB,
    seed: int | None = None,
    text_columns: Sequence[str] = (),
    shard: Shard = ONE_SHARD,
) -> BlockStream:
    found = scan_files(reading or ReadingSection(), list_files(str(path)), ReadRequest(columns, text_columns))
    return BlockStream(found, Share("reading", share_bytes), seed, shard)


def scan_path(
    path: Path | str, reading: ReadingSection | None = None, columns: Sequence[str] | None = None
) -> ScannedFiles:
    return scan_files(reading or ReadingSection(), list_files(str(path)), ReadRequest(columns))


def numbers(batches: Iterable[pa.RecordBatch], column: str = "number") -> list[list[int]]:
    return [batch.column(column).to_pylist() for batch in batches]


def flat(batches: Iterable[pa.RecordBatch], column: str = "number") -> list[int]:
    return [number for batch in numbers(batches, column) for number in batch]


def table_from(stream: RecordStream) -> pa.Table:
    """All rows, without their origin."""
    return pa.Table.from_batches(stream, stream.schema).drop_columns(ROW_COLUMN)


def row_ids(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return flat(batches, ROW_COLUMN)


def take(stream: RecordStream, num_batches: int) -> list[pa.RecordBatch]:
    taken: list[pa.RecordBatch] = []
    if num_batches:
        for batch in stream:
            taken.append(batch)
            if len(taken) == num_batches:
                break
    return taken
