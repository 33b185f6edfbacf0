"""What is in data files of any format."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.pipeline.inspection.agreement import survey_agreeing
from penstock.pipeline.inspection.columns import column_table, shown_columns
from penstock.pipeline.inspection.report import Inspection
from penstock.pipeline.reading_options import files_of, reading_of
from penstock.prep.data_advice import Storage, advise
from penstock.prep.profile import (
    STANDARD_ERROR,
    BlockPieces,
    DataProfile,
    choose_pieces,
    profile_pieces,
    with_footers,
)
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Survey, dataset_type_of, refuse_hdf5
from penstock.runtime.budget import Share
from penstock.runtime.limits import memory_limit
from penstock.runtime.memory import tree_bytes
from penstock.runtime.progress import ProgressLogger

KINDS = {
    "ParquetDataset": "Parquet files",
    "CsvDataset": "CSV files",
    "ArrowDataset": "Arrow files",
    "JsonDataset": "JSON lines",
    "TFRecordDataset": "TFRecord files",
    "NumpyDataset": "NumPy arrays",
}
_ROW_FORMATS = ("CsvDataset", "JsonDataset", "TFRecordDataset")
"""Formats that Parquet nearly always beats in size and speed."""
_PATIENCE_SECONDS = 5.0
_SKETCH_BYTES = 48 * MIB
"""What looking at rows takes beside the reader."""


@dataclass(frozen=True, slots=True)
class DataLook:
    """How to look at data."""

    full: bool = False
    """At all rows, with a progress bar."""
    memory_bytes: int | None = None
    """Of the whole process; None: 512 MiB, and more where the process is large already."""
    plain: bool = False
    reading: dict[str, str | bool | None] = field(default_factory=dict)
    """Arguments of `reading_of`."""


def inspect_data(path: str, look: DataLook) -> Inspection:
    """Schema, rows, sizes, the distribution of each column, and warnings."""
    files = files_of(path)
    refuse_hdf5(files)
    reading = reading_of(files, **look.reading)  # type: ignore[arg-type]
    dataset_type = dataset_type_of(reading, files)
    surveyed, differences = survey_agreeing(reading, files)
    profile = _profile(surveyed, look)
    is_parquet = dataset_type == "ParquetDataset"
    if is_parquet and not profile.is_whole:
        profile = with_footers(profile, surveyed.files)
    storage = Storage(
        path=path,
        num_files=len(files),
        bytes_on_disk=sum(file.size_bytes for file in files),
        row_group_rows=tuple(surveyed.blocks.num_rows.tolist()) if is_parquet else (),
        parquet_part=_parquet_part(profile, surveyed) if dataset_type in _ROW_FORMATS else None,
        format_name=KINDS.get(dataset_type, dataset_type),
    )
    return Inspection(
        kind=_kind(dataset_type, reading),
        facts=_facts(profile, storage, surveyed),
        table_name="columns",
        table=column_table(profile),
        shown_table=shown_columns(profile),
        notes=_notes(profile, is_parquet),
        warnings=differences + advise(profile, storage),
    )


def _profile(surveyed: Survey, look: DataLook) -> DataProfile:
    row_bytes = surveyed.row_bytes  # looked up before memory is measured, since that reads a few rows
    pa.default_memory_pool().release_unused()
    process_bytes = tree_bytes()
    limit_bytes = memory_limit(look.memory_bytes, process_bytes)
    free_bytes = (limit_bytes - process_bytes) * 7 // 8 - _SKETCH_BYTES
    if free_bytes < surveyed.least_bytes:
        needed_bytes = limit_bytes + (surveyed.least_bytes - free_bytes) * 8 // 7
        raise BudgetExceeded(
            f"looking at rows of {format_size(row_bytes)} needs about {format_size(needed_bytes)} but may hold "
            f"{format_size(limit_bytes)}; raise --memory"
        )
    share = Share("the reader", min(free_bytes, surveyed.ample_bytes), "--memory")
    pieces = choose_pieces(surveyed.blocks, row_bytes, full=look.full)
    with _progress(pieces, look) as progress:
        return profile_pieces(surveyed, share, pieces, on_rows=progress.advance)


@contextmanager
def _progress(pieces: list[BlockPieces], look: DataLook) -> Iterator[ProgressLogger]:
    """A bar for work that takes a while; a look at some rows is mostly over before one could read it."""
    total = sum(piece.num_rows for piece in pieces)
    min_seconds = 1.0 if look.full else _PATIENCE_SECONDS
    with ProgressLogger(
        "inspecting", "rows", total, plain=look.plain, min_seconds=min_seconds, show_end=look.full
    ) as progress:
        yield progress


def _kind(dataset_type: str, reading: ReadingSection) -> str:
    kind = KINDS.get(dataset_type, dataset_type)
    if dataset_type != "CsvDataset":
        return kind
    return f"{kind} (first line taken for names)" if reading.with_header else f"{kind} (without a header)"


def _facts(profile: DataProfile, storage: Storage, surveyed: Survey) -> dict[str, int | float | str]:
    num_blocks = len(surveyed.blocks)
    blocks = "row_groups" if storage.row_group_rows else "blocks"
    largest_rows = int(surveyed.blocks.num_rows.max()) if num_blocks else 0
    facts: dict[str, int | float | str] = {
        "files": storage.num_files,
        "rows": profile.num_rows,
        blocks: num_blocks,
        "bytes_on_disk": storage.bytes_on_disk,
        "bytes_in_memory": round(profile.row_bytes * profile.num_rows),
        "bytes_per_row_on_disk": round(storage.bytes_on_disk / max(1, profile.num_rows), 1),
        "bytes_per_row_in_memory": round(profile.row_bytes, 1),
        f"largest_{blocks[:-1]}_bytes": round(profile.row_bytes * largest_rows),
    }
    if not profile.is_whole:
        facts["rows_looked_at"] = profile.num_seen
        facts["part_looked_at"] = profile.num_seen / profile.num_rows
    return facts


def _notes(profile: DataProfile, is_parquet: bool) -> list[str]:
    """How to read the table."""
    notes = []
    if not profile.is_whole:
        exact = " (nulls, min and max of numbers: all rows, by the footers)" if is_parquet else ""
        notes.append(f"from rows at {profile.num_places} places{exact}; --full looks at all rows")
    if any(not column.distinct_is_exact for column in profile.columns):
        notes.append(f"~ is about: within {2 * STANDARD_ERROR:.0%} in 19 of 20 cases")
    return notes


def _parquet_part(profile: DataProfile, surveyed: Survey) -> float | None:
    """What the first rows would take as Parquet, as a part of what rows take in the files."""
    rows = profile.first_rows
    if rows is None or not profile.num_rows:
        return None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([rows]), sink, compression="zstd")
    row_bytes = sum(file.size_bytes for file in surveyed.files) / profile.num_rows
    return float(sink.getvalue().size / rows.num_rows / row_bytes)
