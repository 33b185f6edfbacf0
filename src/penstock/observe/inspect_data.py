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
from penstock.prep.profile import STANDARD_ERROR, DataProfile, add_footers, choose_pieces, profile_pieces
from penstock.readers.files import DataFile
from penstock.readers.recognition import files_of, reading_of
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of, refuse_hdf5, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share
from penstock.runtime.memory import memory_limit, tree_bytes
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
_BAR_AFTER_SECONDS = 5.0
"""A look at some rows is mostly over before one could read a bar."""
_SKETCH_BYTES = 48 * MIB
"""What looking at rows takes beside the reader."""
_MIN_WIDTH = 12
"""Characters that a column of the text table keeps."""
_SHOWN_PART = 0.05
"""The most frequent value is shown where it is at least this part..."""
_STANDS_OUT = 1.1
"""...and so many times as frequent as if all values were equally frequent."""
_MAX_CHARACTERS = 24


@dataclass(slots=True)
class Inspection:
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
        named = {self.table_name: self.table} if self.table_name else {}
        notes = {"notes": self.notes} if self.notes else {}
        return {"kind": self.kind, **self.facts, **named, **notes, "warnings": self.warnings}

    def as_text(self, width: int | None = None) -> str:
        """Everything, for a person, in lines of at most `width` characters where that is possible."""
        lines = [self.kind]
        lines += [f"  {name.replace('_', ' ')}: {_fact(name, value)}" for name, value in self.facts.items()]
        table = self.table if self.shown_table is None else self.shown_table
        if table:
            lines += ["", *text_table(table, width)]
        texts = [f"  {note}" for note in self.notes] + [f"warning: {warning}" for warning in self.warnings]
        if width is not None:  # commands and paths are not broken
            options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
            texts = [
                textwrap.fill(text, max(width, 40), subsequent_indent="    ", **options) for text in texts
            ]
        return "\n".join(lines + texts)


def _fact(name: str, value: Any) -> str:
    if "bytes" in name:
        return format_size(round(value))
    if isinstance(value, float):
        return f"{value:.2%}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_fact(key, count)}" for key, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def text_table(rows: Sequence[Mapping[str, Any]], width: int | None = None) -> list[str]:
    """Rows under their names, in columns of the width they need, narrowed to fit where they would not."""

    def cell(value: Any) -> str:
        if value is None:
            return "?"
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    names = list(rows[0])
    cells = [names] + [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    if width is not None:
        while len(widths) > 2 and sum(min(each, _MIN_WIDTH) + 2 for each in widths) > width:
            widths.pop()
        while sum(widths) + 2 * len(widths) > width and max(widths) > _MIN_WIDTH:
            widths[widths.index(max(widths))] -= 1
    lines = []
    for line in cells:
        pairs = zip(line, widths, strict=False)
        shown = [text if len(text) <= most else text[: most - 1] + "…" for text, most in pairs]
        lines.append("".join(f"  {text:{most}}" for text, most in zip(shown, widths, strict=True)).rstrip())
    if len(widths) < len(names):
        lines.append(f"  (no room for: {', '.join(names[len(widths) :])}; see --json)")
    return lines


# --- Columns ---------------------------------------------------------------------------------------------


def column_table(profile: DataProfile) -> list[dict[str, Any]]:
    """One row per column, with values as Python knows them."""
    rows = []
    for column in profile.columns:
        value, part = column.top or (None, None)
        exactness = "exactly" if column.distinct_is_exact else "about"
        rows.append(
            {
                "column": column.name,
                "type": str(column.type),
                "nulls": column.num_nulls if column.num_rows == profile.num_rows else None,
                "null_part": column.num_nulls / max(1, column.num_rows),
                "distinct": column.distinct,
                "distinct_is": exactness if profile.is_whole else "at least",
                "min": column.min_value,
                "max": column.max_value,
                "mean": column.mean,
                "mean_length": column.mean_length,
                "most_frequent": value,
                "most_frequent_part": part,
            }
        )
    return rows


def shown_columns(profile: DataProfile, table: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The table for people; what says nothing of any column is left out."""
    rows = []
    for column, row in zip(profile.columns, table, strict=True):
        sign = ("" if profile.is_whole else ">=") + ("" if column.distinct_is_exact else "~")
        shown = shown_values(row)
        rows.append(
            {
                "column": column.name,
                "type": short_type(column.type),
                "nulls": shown["nulls"],
                "distinct": f"{sign}{column.distinct:,}",
                "min": shown["min"],
                "max": shown["max"],
                "length": "" if column.mean_length is None else f"{column.mean_length:.1f}",
                "most frequent": shown["most frequent"],
            }
        )
    said = [name for name in (rows[0] if rows else {}) if any(row[name] for row in rows)]
    return [{name: row[name] for name in said} for row in rows]


def shown_values(row: Mapping[str, Any]) -> dict[str, str]:
    """What stands in a row of `column_table`, as cells: the part of nulls, extremes, and what stands out."""
    nulls = row.get("null_part", 0.0)
    part, distinct = row.get("most_frequent_part") or 0.0, row.get("distinct", 0)
    stands_out = distinct > 1 and part >= max(_SHOWN_PART, _STANDS_OUT / distinct)
    return {
        # A share that is 0 only where there is nothing.
        "nulls": "0" if not nulls else f"{nulls:.1%}" if nulls >= 0.001 else "<0.1%",
        "min": shown_value(row.get("min")),
        "max": shown_value(row.get("max")),
        "most frequent": f"{shown_value(row.get('most_frequent'))} ({part:.0%})" if stands_out else "",
    }


def shown_value(value: Any) -> str:
    """A value in a cell; what cannot be printed is a dot."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    text = (value.decode(errors="replace") if isinstance(value, bytes) else str(value)) or "''"
    text = "".join(character if character.isprintable() else "·" for character in text)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


def plain_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, date) else str(value)


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


# --- Files -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DataLook:
    full: bool = False
    """At all rows, with a progress bar."""
    memory_bytes: int | None = None
    """Of the whole process; None: 512 MiB, and more where the process is large already."""
    plain: bool = False
    reading: dict[str, str | bool | None] = field(default_factory=dict)
    """Arguments of `reading_of`."""

    @contextmanager
    def progress(self, num_rows: int) -> Iterator[ProgressLogger]:
        min_seconds = 1.0 if self.full else _BAR_AFTER_SECONDS
        with ProgressLogger(
            "inspecting", "rows", num_rows, plain=self.plain, min_seconds=min_seconds, show_end=self.full
        ) as progress:
            yield progress


def inspect_data(path: str, look: DataLook) -> Inspection:
    files = files_of(path)
    refuse_hdf5(files)
    reading = reading_of(files, **look.reading)  # type: ignore[arg-type]
    dataset_type = dataset_type_of(reading, files)
    is_parquet = dataset_type == "ParquetDataset"
    scanned, warnings = _scan_agreeing(reading, files)
    profile = _profile(scanned, look)
    if is_parquet and not profile.is_whole:
        add_footers(profile, scanned.files)
    bytes_on_disk = sum(file.size_bytes for file in files)
    parquet_part = None
    if dataset_type in _ROW_FORMATS and profile.first_rows is not None and profile.num_rows:
        # What the first rows would take as Parquet, as a part of what rows take in the files.
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches([profile.first_rows]), sink, compression="zstd")
        row_bytes = sum(file.size_bytes for file in scanned.files) / profile.num_rows
        parquet_part = float(sink.getvalue().size / profile.first_rows.num_rows / row_bytes)
    kind = KINDS.get(dataset_type, dataset_type)
    storage = Storage(
        path=path,
        num_files=len(files),
        bytes_on_disk=bytes_on_disk,
        row_group_rows=tuple(scanned.blocks.num_rows.tolist()) if is_parquet else (),
        parquet_part=parquet_part,
        format_name=kind,
    )
    blocks, num_blocks = "row_groups" if storage.row_group_rows else "blocks", len(scanned.blocks)
    largest_rows = int(scanned.blocks.num_rows.max()) if num_blocks else 0
    facts: dict[str, int | float | str] = {
        "files": len(files),
        "rows": profile.num_rows,
        blocks: num_blocks,
        "bytes_on_disk": bytes_on_disk,
        "bytes_in_memory": round(profile.row_bytes * profile.num_rows),
        "bytes_per_row_on_disk": round(bytes_on_disk / max(1, profile.num_rows), 1),
        "bytes_per_row_in_memory": round(profile.row_bytes, 1),
        f"largest_{blocks[:-1]}_bytes": round(profile.row_bytes * largest_rows),
    }
    notes = []
    if not profile.is_whole:
        facts["rows_looked_at"] = profile.num_seen
        facts["part_looked_at"] = profile.num_seen / profile.num_rows
        exact = " (nulls, min and max of numbers: all rows, by the footers)" if is_parquet else ""
        notes.append(f"from rows at {profile.num_places} places{exact}; --full looks at all rows")
    if any(not column.distinct_is_exact for column in profile.columns):
        notes.append(f"~ is about: within {2 * STANDARD_ERROR:.0%} in 19 of 20 cases")
    if dataset_type == "CsvDataset":
        kind += " (first line taken for names)" if reading.with_header else " (without a header)"
    table = column_table(profile)
    return Inspection(
        kind=kind,
        facts=facts,
        table_name="columns",
        table=[{name: plain_value(value) for name, value in row.items()} for row in table],
        shown_table=shown_columns(profile, table),
        notes=notes,
        warnings=warnings + advise(profile, storage),
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
    with look.progress(sum(piece.num_rows for piece in pieces)) as progress:
        return profile_pieces(scanned, share, pieces, on_rows=progress.advance)


def _scan_agreeing(reading: ReadingSection, files: Sequence[DataFile]) -> tuple[ScannedFiles, list[str]]:
    """A scan of the files that have the columns and types of the first, and a warning about the others."""

    def difference(schema: pa.Schema, file: DataFile) -> str | None:
        first_name, name = os.path.basename(files[0].path), os.path.basename(file.path)
        for column in schemas[0]:
            if column.name not in schema.names:
                return f"column '{column.name}' of {first_name} is not in {name}"
            kind = schema.field(column.name).type
            if kind != column.type:
                return f"column '{column.name}' is {column.type} in {first_name} but {kind} in {name}"
        return None

    try:
        return scan_files(reading, files, ReadRequest()), []
    except DataError:
        # A file that cannot be read at all is reported here, alone.
        schemas = [scan_files(reading, [file], ReadRequest()).columns for file in files]
        differences = [difference(*each) for each in zip(schemas, files, strict=True)]
        found = next(filter(None, differences), None)
        if found is None:
            raise
    same = [file for file, other in zip(files, differences, strict=True) if other is None]
    left_out = (
        f"{len(files) - len(same):,} of {len(files):,} files differ from the first and were left out here"
    )
    return scan_files(reading, same, ReadRequest()), [
        f"{found}; {left_out}; write all with the same columns and types"
    ]
