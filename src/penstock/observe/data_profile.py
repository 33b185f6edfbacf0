"""What the columns of the training data hold, by a short look at some rows; and columns as tables.

It is taken once in the life of a run, before the model is there to share the memory with, and shown in its report.
Where no look can be taken, the report says why, and the run goes on. `penstock inspect` shows columns in the same way.
"""

import logging
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from penstock.config.sizes import MIB, format_size
from penstock.prep.profile import DataProfile, choose_few_pieces, profile_pieces
from penstock.readers.columns import is_list
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of, scan_files
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Quarantine
from penstock.runtime.budget import MemoryBudget, Share

MAX_COLUMNS = 200
MAX_ROWS = 1 << 14
MAX_SECONDS = 0.3
"""After this time no further piece is looked at."""
SKETCH_BYTES = 16 * MIB
"""What looking takes beside the reader."""
_READER_BYTES = 32 * MIB
"""Enough for a look; with more, large row groups would be decoded whole for a few of their rows."""
_MAX_CHARACTERS = 100
_SHOWN_CHARACTERS = 24
_SHOWN_PART = 0.05
"""The most frequent value is shown where it is at least this part..."""
_STANDS_OUT = 1.1
"""...and so many times as frequent as if all values were equally frequent."""
_QUARANTINING_READERS = ("CsvDataset", "JsonDataset", "TFRecordDataset")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DataLook:
    """A look at the data of a run: as it is recorded, and what it found; or `problem`, why there is nothing."""

    record: dict[str, Any]
    profile: DataProfile | None = None

    @property
    def problem(self) -> str | None:
        return self.record.get("problem")

    @classmethod
    def failed(cls, error: Exception) -> "DataLook":
        """A run that could be trained never fails for a picture of its data."""
        _logger.debug("the data were not profiled", exc_info=error)
        return cls({"problem": f"looking at the data failed: {str(error)[: 5 * _MAX_CHARACTERS]}"})


def profile_data(
    reading: ReadingSection,
    scanned: ScannedFiles,
    request: ReadRequest,
    uses: Mapping[str, list[str]],
    budget: MemoryBudget,
    process_bytes: int,
    on_batch: Callable[[pa.RecordBatch], None],
) -> DataLook:
    """The columns and what is used for what.

    `request` is what the scan was asked for, `uses` what each column is for, in the order to show them. `on_batch` sees
    the rows that are looked at.
    """
    started_at = time.perf_counter()
    dataset_type = dataset_type_of(reading, scanned.files)
    if dataset_type == "OdpsDataset":
        problem = "tables of ODPS are read over the network in sessions of their own, and not for a look"
        return DataLook({"problem": problem})
    if not scanned.num_rows:
        return DataLook({"problem": "there are no rows"})
    # Not more than in training, and less where the process leaves less.
    free_bytes = budget.limit_bytes - process_bytes - SKETCH_BYTES
    free_bytes = min(budget.shares["reader"].limit_bytes, free_bytes)
    if free_bytes < scanned.sizes.min_bytes:
        problem = (
            f"reading them needs {format_size(scanned.sizes.min_bytes)} and looking "
            f"{format_size(SKETCH_BYTES)}, but beside the process only "
            f"{format_size(max(0, free_bytes + SKETCH_BYTES))} of memory.limit are free"
        )
        return DataLook({"problem": problem})
    if request.quarantine is not None and dataset_type in _QUARANTINING_READERS:
        # Only rows that are trained on count as left out: this look writes no bad row aside.
        ignored = Quarantine(None, sys.maxsize, [file.path for file in scanned.files])
        scanned = scan_files(reading, scanned.files, replace(request, quarantine=ignored))
    profile = profile_pieces(
        scanned,
        Share("the look at the data", min(free_bytes, max(scanned.sizes.min_bytes, _READER_BYTES))),
        choose_few_pieces(scanned.blocks, scanned.row_bytes, MAX_ROWS),
        columns=list(uses)[:MAX_COLUMNS],
        enough=lambda: time.perf_counter() - started_at > MAX_SECONDS,
        on_batch=on_batch,
    )
    columns = []
    for row, facts in zip(column_table(profile), profile.columns, strict=True):
        # The line of `penstock inspect` with what the column is used for and, of a list, how long it is.
        has_items = is_list(facts.type) or pa.types.is_map(facts.type)
        shortest, longest = (facts.length_range if has_items else None) or (None, None)
        line = {name: plain_value(value) for name, value in row.items() if name != "nulls"}
        for name, value in line.items():
            if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
                line[name] = value[: _MAX_CHARACTERS - 1] + "…"
        line |= {"type": short_type(facts.type), "used_for": uses[facts.name]}
        columns.append({**line, "shortest": shortest, "longest": longest})
    record = {
        "rows": profile.num_rows,
        "rows_looked_at": profile.num_seen,
        "columns_used": len(uses),
        "columns": columns,
        "seconds": round(time.perf_counter() - started_at, 3),
    }
    return DataLook(record, profile)


# --- Columns as tables ----------------------------------------------------------------------------------


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
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


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
