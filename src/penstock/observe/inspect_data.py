"""What is in data files of any format."""

import math
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import MIB, format_size
from penstock.prep.data_advice import Storage, advise
from penstock.prep.profile import (
    STANDARD_ERROR,
    BlockPieces,
    ColumnFacts,
    DataProfile,
    choose_pieces,
    profile_pieces,
    with_footers,
)
from penstock.readers.files import DataFile
from penstock.readers.recognition import files_of, reading_of
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of, refuse_hdf5, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share
from penstock.runtime.memory import memory_limit, tree_bytes
from penstock.runtime.progress import ProgressLogger

_LEAST_WIDTH = 12
_GAP = "  "


@dataclass(slots=True)
class Inspection:
    """Facts by name, one table, and what the reader should be warned of."""

    kind: str
    facts: dict[str, Any]
    table_name: str = ""
    table: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """How to read the numbers."""
    shown_table: list[dict[str, str]] | None = None
    """The table as people read it, where that is not the table itself."""

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        named = {self.table_name: self.table} if self.table_name else {}
        notes = {"notes": self.notes} if self.notes else {}
        return {"kind": self.kind, **self.facts, **named, **notes, "warnings": self.warnings}

    def as_text(self, width: int | None = None) -> str:
        """Everything, for a person, in lines of at most `width` characters where that is possible."""
        lines = [self.kind]
        lines += [f"  {name.replace('_', ' ')}: {shown(name, value)}" for name, value in self.facts.items()]
        table = self.table if self.shown_table is None else self.shown_table
        if table:
            lines += ["", *text_table(table, width)]
        lines += [wrapped(f"  {note}", width) for note in self.notes]
        lines += [wrapped(f"warning: {warning}", width) for warning in self.warnings]
        return "\n".join(lines)


def shown(name: str, value: Any) -> str:
    """A fact as a person reads it."""
    if "bytes" in name:
        return format_size(round(value))
    if isinstance(value, float):
        return f"{value:.2%}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(key, count)}" for key, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def wrapped(text: str, width: int | None) -> str:
    """The text in lines that fit; commands and paths are not broken."""
    if width is None:
        return text
    return textwrap.fill(
        text, max(width, 40), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def text_table(rows: Sequence[Mapping[str, Any]], width: int | None = None) -> list[str]:
    """Rows under their names, in columns of the width they need, narrowed to fit where they would not."""
    names = list(rows[0])
    cells = [names] + [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    left_out: list[str] = []
    if width is not None:
        while len(names) - len(left_out) > 2 and not _fits([min(w, _LEAST_WIDTH) for w in widths], width):
            left_out.insert(0, names[len(widths) - 1])
            widths.pop()
        _narrow(widths, width)
    lines = [_line(line, widths) for line in cells]
    if left_out:
        lines.append(f"  (no room for: {', '.join(left_out)}; see --json)")
    return lines


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    cut = [
        text if len(text) <= width else text[: width - 1] + "…"
        for text, width in zip(texts, widths, strict=False)
    ]
    return (_GAP + _GAP.join(text.ljust(width) for text, width in zip(cut, widths, strict=True))).rstrip()


def _fits(widths: Sequence[int], width: int) -> bool:
    return sum(widths) + len(_GAP) * len(widths) <= width


def _narrow(widths: list[int], width: int) -> None:
    """Take from the widest column until all fit."""
    while not _fits(widths, width) and max(widths) > _LEAST_WIDTH:
        widths[widths.index(max(widths))] -= 1


def cell(value: Any) -> str:
    """One cell; what is not known stays a question mark."""
    if value is None:
        return "?"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_SHOWN_PART = 0.05
"""The most frequent value is shown where it is at least this part..."""
_STANDS_OUT = 1.1
"""...and so many times as frequent as if all values were equally frequent."""
_MOST_TEXT = 20


def column_table(profile: DataProfile) -> list[dict[str, Any]]:
    """One row per column, ready for JSON."""
    return [_row(column, profile) for column in profile.columns]


def _row(column: ColumnFacts, profile: DataProfile) -> dict[str, Any]:
    value, part = column.top or (None, None)
    return {
        "column": column.name,
        "type": str(column.type),
        "nulls": column.num_nulls if column.num_rows == profile.num_rows else None,
        "null_part": column.num_nulls / max(1, column.num_rows),
        "distinct": column.distinct,
        "distinct_is": _how_distinct(column, profile),
        "min": plain_value(column.least),
        "max": plain_value(column.most),
        "mean": plain_value(column.mean),
        "mean_length": column.mean_length,
        "most_frequent": plain_value(value),
        "most_frequent_part": part,
    }


def _how_distinct(column: ColumnFacts, profile: DataProfile) -> str:
    if not profile.is_whole:
        return "at least"
    return "exactly" if column.distinct_is_exact else "about"


def shown_columns(profile: DataProfile) -> list[dict[str, str]]:
    """One row per column, for people; columns of the table that say nothing are left out."""
    rows = [_shown(column, profile) for column in profile.columns]
    said = [name for name in (rows[0] if rows else {}) if any(row[name] for row in rows)]
    return [{name: row[name] for name in said} for row in rows]


def _shown(column: ColumnFacts, profile: DataProfile) -> dict[str, str]:
    return {
        "column": column.name,
        "type": short_type(column.type),
        "nulls": _part(column.num_nulls, column.num_rows),
        "distinct": _distinct(column, profile),
        "min": short_value(column.least),
        "max": short_value(column.most),
        "length": "" if column.mean_length is None else f"{column.mean_length:.1f}",
        "most frequent": _frequent(column),
    }


def _frequent(column: ColumnFacts) -> str:
    if column.top is None or column.distinct < 2:
        return ""
    value, part = column.top
    stands_out = part >= _SHOWN_PART and part * column.distinct >= _STANDS_OUT
    return f"{short_value(value)} ({part:.0%})" if stands_out else ""


def _distinct(column: ColumnFacts, profile: DataProfile) -> str:
    about = "" if column.distinct_is_exact else "~"
    count = f"{about}{column.distinct:,}"
    return count if profile.is_whole else f">={count}"


def _part(count: int, total: int) -> str:
    if not count:
        return "0"
    part = count / total
    return f"{part:.1%}" if part >= 0.001 else "<0.1%"


def short_type(kind: Any) -> str:
    """A type in as few characters as tell it.

    >>> import pyarrow as pa
    >>> short_type(pa.list_(pa.int64())), short_type(pa.map_(pa.string(), pa.float32()))
    ('list<int64>', 'map<string,float>')
    """
    if pt.is_map(kind):
        return f"map<{short_type(kind.key_type)},{short_type(kind.item_type)}>"
    if pt.is_fixed_size_list(kind):
        return f"list<{short_type(kind.value_type)}>[{kind.list_size}]"
    if pt.is_list(kind) or pt.is_large_list(kind):
        return f"list<{short_type(kind.value_type)}>"
    if pt.is_dictionary(kind):
        return f"dictionary<{short_type(kind.value_type)}>"
    return str(kind)


def short_value(value: Any) -> str:
    """A value in a cell."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    text = (value.decode(errors="replace") if isinstance(value, bytes) else str(value)) or "''"
    text = "".join(character if character.isprintable() else "·" for character in text)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def plain_value(value: Any) -> Any:
    """A value that JSON can hold."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def scan_agreeing(reading: ReadingSection, files: Sequence[DataFile]) -> tuple[ScannedFiles, list[str]]:
    """A scan of the files that have the columns and types of the first, and what to say about the others."""
    try:
        return scan_files(reading, files, ReadRequest()), []
    except DataError:
        if len(files) == 1:
            raise
        # A file that cannot be read at all is told here, alone.
        schemas = [scan_files(reading, [file], ReadRequest()).columns for file in files]
        same = [file for file, schema in zip(files, schemas, strict=True) if schema.equals(schemas[0])]
        if len(same) == len(files):
            raise
    other = next(index for index, schema in enumerate(schemas) if not schema.equals(schemas[0]))
    difference = _difference(schemas[0], files[0], schemas[other], files[other])
    left_out = (
        f"{len(files) - len(same):,} of {len(files):,} files differ from the first and were left out here"
    )
    return scan_files(reading, same, ReadRequest()), [
        f"{difference}; {left_out}; write all with the same columns and types"
    ]


def _difference(first: pa.Schema, first_file: DataFile, second: pa.Schema, second_file: DataFile) -> str:
    first_name, second_name = os.path.basename(first_file.path), os.path.basename(second_file.path)
    for one in first:
        if one.name not in second.names:
            return f"column '{one.name}' of {first_name} is not in {second_name}"
        other_type = second.field(one.name).type
        if other_type != one.type:
            return f"column '{one.name}' is {one.type} in {first_name} but {other_type} in {second_name}"
    added = next((name for name in second.names if name not in first.names), None)
    if added is not None:
        return f"column '{added}' of {second_name} is not in {first_name}"
    return f"the columns of {second_name} have another order than those of {first_name}"


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
    scanned, differences = scan_agreeing(reading, files)
    profile = _profile(scanned, look)
    is_parquet = dataset_type == "ParquetDataset"
    if is_parquet and not profile.is_whole:
        profile = with_footers(profile, scanned.files)
    storage = Storage(
        path=path,
        num_files=len(files),
        bytes_on_disk=sum(file.size_bytes for file in files),
        row_group_rows=tuple(scanned.blocks.num_rows.tolist()) if is_parquet else (),
        parquet_part=_parquet_part(profile, scanned) if dataset_type in _ROW_FORMATS else None,
        format_name=KINDS.get(dataset_type, dataset_type),
    )
    return Inspection(
        kind=_kind(dataset_type, reading),
        facts=_facts(profile, storage, scanned),
        table_name="columns",
        table=column_table(profile),
        shown_table=shown_columns(profile),
        notes=_notes(profile, is_parquet),
        warnings=differences + advise(profile, storage),
    )


def _profile(scanned: ScannedFiles, look: DataLook) -> DataProfile:
    row_bytes = scanned.row_bytes  # looked up before memory is measured, since that reads a few rows
    pa.default_memory_pool().release_unused()
    process_bytes = tree_bytes()
    limit_bytes = memory_limit(look.memory_bytes, process_bytes)
    free_bytes = (limit_bytes - process_bytes) * 7 // 8 - _SKETCH_BYTES
    if free_bytes < scanned.min_bytes:
        needed_bytes = limit_bytes + (scanned.min_bytes - free_bytes) * 8 // 7
        raise BudgetExceeded(
            f"looking at rows of {format_size(row_bytes)} needs about {format_size(needed_bytes)} but may hold "
            f"{format_size(limit_bytes)}; raise --memory"
        )
    share = Share("the reader", min(free_bytes, scanned.ample_bytes), "--memory")
    pieces = choose_pieces(scanned.blocks, row_bytes, full=look.full)
    with _progress(pieces, look) as progress:
        return profile_pieces(scanned, share, pieces, on_rows=progress.advance)


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


def _facts(profile: DataProfile, storage: Storage, scanned: ScannedFiles) -> dict[str, int | float | str]:
    num_blocks = len(scanned.blocks)
    blocks = "row_groups" if storage.row_group_rows else "blocks"
    largest_rows = int(scanned.blocks.num_rows.max()) if num_blocks else 0
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


def _parquet_part(profile: DataProfile, scanned: ScannedFiles) -> float | None:
    """What the first rows would take as Parquet, as a part of what rows take in the files."""
    rows = profile.first_rows
    if rows is None or not profile.num_rows:
        return None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([rows]), sink, compression="zstd")
    row_bytes = sum(file.size_bytes for file in scanned.files) / profile.num_rows
    return float(sink.getvalue().size / rows.num_rows / row_bytes)
