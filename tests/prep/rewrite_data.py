"""Small data sets to rewrite, and what is in the result."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.sizes import GIB
from penstock.prep.rewrite import RewriteOptions, RewriteSummary, rewrite
from penstock.readers.files import list_files
from penstock.readers.scan import ReadRequest, ScannedFiles, scan_files
from penstock.readers.sections import ReadingSection


def write_input(folder: Path, rows_per_file: Sequence[int], row_group_size: int = 1000) -> Path:
    """Consecutive numbers with values of several types, over several files."""
    folder.mkdir(exist_ok=True)
    start = 0
    for index, num_rows in enumerate(rows_per_file):
        table = table_of(start, start + num_rows)
        pq.write_table(table, folder / f"part-{index}.parquet", row_group_size=row_group_size)
        start += num_rows
    return folder


def table_of(start: int, stop: int) -> pa.Table:
    """Rows that one can tell apart."""
    numbers = range(start, stop)
    return pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "text": pa.array(
                [None if number % 7 == 0 else f"text {number % 5}" for number in numbers], pa.string()
            ),
            "list": pa.array([[number] * (number % 3) for number in numbers], pa.list_(pa.int64())),
            "map": pa.array([[("k", number)] for number in numbers], pa.map_(pa.string(), pa.int64())),
        }
    )


def scan_of(path: Path, columns: Sequence[str] | None = None) -> ScannedFiles:
    """What can be known of Parquet files."""
    return scan_files(ReadingSection(), list_files(str(path)), ReadRequest(columns))


def rewritten(path: Path, out: Path, overwrite: bool = False, **options: Any) -> RewriteSummary:
    """Rewrite with these options and plenty of memory."""
    chosen = RewriteOptions(**{"memory_bytes": 4 * GIB} | options)
    return rewrite(scan_of(path), out, chosen, overwrite=overwrite)


def rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a folder of Parquet files, in their order."""
    return [row for file in list_files(str(path)) for row in pq.read_table(file.path).to_pylist()]


def numbers(path: Path) -> list[int]:
    """The column that tells rows apart."""
    return [row["number"] for row in rows(path)]


def multiset(found: list[dict[str, Any]]) -> Counter[str]:
    """Rows without their order."""
    return Counter(repr(row) for row in found)
